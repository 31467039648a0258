"""AArch64: what Landbridge has to know of it."""
