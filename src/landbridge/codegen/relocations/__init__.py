"""How references between objects are resolved, by a table for each instruction set."""
