"""Front ends: read other programs' files into descriptors. Optional packages are imported only when they are used."""
