"""Expansions of float functions into arithmetic, for targets whose own functions are missing or not exact enough."""
