"""Evaluates graphs and their PrimFuncs with numpy: what a compile computes of constants."""
