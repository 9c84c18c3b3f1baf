"""Applies the rules to a descriptor for a target."""
