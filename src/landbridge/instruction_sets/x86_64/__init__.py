"""x86-64: what Landbridge has to know of it."""
