"""Fusion: the DirectML graphs that ONNX Runtime makes of a model's nodes, and the faults of these graphs.

operators   which DirectML operators ONNX operators become
optimizer   what ONNX Runtime's optimization leaves of a graph
fused       a graph that is handed to CompileGraph, with the names of the model
build       the graphs that are handed to CompileGraph
judging     what comes of a graph, by release
findings    what is wrong, said of Splits and Concats by name, with the cure (dmlsplit.formats.onnx.cures)
"""
