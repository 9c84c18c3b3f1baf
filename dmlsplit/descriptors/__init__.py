"""What DirectML.h says: enums, descriptors, layouts, geometry, and the places that diagnostics name in them."""
