"""Front ends: what other programs wrote, read into descriptors. Optional packages are imported where they are used."""
