"""Front ends: read other programs' files into descriptors. Optional packages are imported where they are used."""
