"""DirectML.h in Python: enums, descriptors, layouts, geometry, and the locations in them that diagnostics name."""
