"""Resolves references between objects, by a table for each instruction set."""
