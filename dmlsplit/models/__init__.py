"""The graph of a model: scopes, shapes, constants, functions, and its Splits and Concats."""
