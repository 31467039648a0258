"""Verifies ``lb.alias`` of @main."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects import func

from landbridge.ir.main_attributes import aliases, io_names


def check_aliases(main: func.FuncOp, fail: Callable[..., Any]) -> None:
    """Call ``fail`` unless each output of ``lb.alias`` is one of ``main`` and no two share an input."""
    inputs, outputs = io_names(main)
    taken: set[str] = set()
    for output, input in aliases(main).items():
        if output not in outputs or input not in inputs or input in taken:
            fail(
                main,
                f"lb.alias lets {output!r} be the memory of {input!r}",
                "an output, and an input that no other output may be",
            )
        taken.add(input)
