"""RISC-V of 64 bits (RV64GC, with or without vectors): what Landbridge has to know of it."""
