"""Explains lines of ONNX Runtime's and DirectML's logs.

codes      names of HRESULTs and NTSTATUSes
messages   the table of known messages: a pattern, its meaning, a public thread with it, what to run next
reading    converts the lines of a log to findings
"""
