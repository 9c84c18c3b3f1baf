"""The rules applied to a descriptor for a target."""
