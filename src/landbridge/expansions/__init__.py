"""Functions of floats written out in arithmetic, for every generator whose target has none that are exact enough."""
