"""Kernels of numpy calls, which the programs of the first tier call (``landbridge.first_tier``).

A kernel writes its results into the memory that the plan gave them. It takes operands, then destinations, all dense
arrays, and attributes that plain data can express. Everything that a node's shapes decide was decided when the program
was made: axes are not negative, pads are numbers. Sums are numpy's, so results differ in the last bits from those of
compiled programs.
"""
