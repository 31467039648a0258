"""Names of dimensions by which exporters say that an extent is unknown: two that have one need not be equal."""

from __future__ import annotations

#: PaddlePaddle writes ``?``, others a text of Python's None.
ANONYMOUS = ("", "?", "None")
