"""Sizes: integers that are known only at run time, as polynomials over the dimensions of a program."""
