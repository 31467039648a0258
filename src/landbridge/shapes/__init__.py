"""Shapes: legal extents, strides and the bytes that they span; the axes that form rows of a space."""
