"""The operator library: handlers by family that write graph IR; ``registry`` finds them."""
