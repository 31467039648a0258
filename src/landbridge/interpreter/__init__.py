"""Evaluates graphs and their PrimFuncs with numpy, to fold constants at compile time."""
