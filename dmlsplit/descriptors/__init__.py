"""DirectML.h in Python: enums, descriptors, layouts, geometry, and locations for diagnostics."""
