"""A first program for a model, in the time that reading it takes: numpy kernels, for shapes that are known."""
