"""A conformance suite for implementations of DirectML's Split, Join and graphs, and for ONNX Runtime's sessions.

recorded    the recorded behaviour of builds of DirectML and versions of ONNX Runtime, as stored in the checkout
suite       the recordings as cases, each a question with the answers of builds; case files, read and written
judging     the comparison of an answer with the recorded ones
peers       a command that is asked through standard input and output
running     a command asked about all cases, or a sample
summary     results counted by file
answering   the answers of dmlsplit and of the real libraries, as such a command gives them

docs/conformance.md describes the files and the protocol.
"""
