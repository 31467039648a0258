"""ARMv7-A with hardware floating point: what Landbridge has to know of it."""
