"""The C core from Python: plans, arrays, bound operators, large files."""
