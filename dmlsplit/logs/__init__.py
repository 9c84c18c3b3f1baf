"""Lines of ONNX Runtime's and DirectML's logs, explained.

codes      names of HRESULTs and NTSTATUSes
messages   the table of known messages: a pattern, its meaning, a public thread with it, what to run next
reading    the lines of a log -> findings
"""
