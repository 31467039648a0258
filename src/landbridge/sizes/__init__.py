"""Sizes: integers that are known when an input comes, as polynomials over the dimensions of a program."""
