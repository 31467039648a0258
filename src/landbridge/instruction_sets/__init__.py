"""The instruction sets of CPUs: one description each, and the registry that finds them by name."""
