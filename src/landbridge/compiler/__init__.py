"""The compiler as one function: options, cached results and progress around a compile from model to file."""
