"""A first program at once, and the full one from a process in the background: ``compile(..., optimize="fast")``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

from landbridge.compiler.background_compile import BackgroundCompile
from landbridge.compiler.cache import CacheEntry
from landbridge.compiler.options import CompileOptions
from landbridge.executable.executable import Executable
from landbridge.first_tier.program import first_program
from landbridge.targets import Target

#: The only option that a first program takes: all others must have the values that mean nothing.
_TAKEN = "shapes"
_UNSET = (None, (), False, "error")


def first_then_full(
    model: object, targets: Sequence[Target], options: CompileOptions, unlimited: int, entry: CacheEntry
) -> Executable | None:
    """Returns a first program for ``model`` whose ``replacement`` is being compiled into ``entry``; None where there is
    none: for options other than ``shapes``, more nodes than ``unlimited``, models that are not ONNX files or bytes, and
    where no process can be started.
    """
    if isinstance(model, str) and "\n" not in model:
        model = Path(model)
    if not isinstance(model, bytes | Path) or list(targets) != [Target("llvm")]:
        return None
    for each in fields(options):
        value = getattr(options, each.name)
        if each.name not in (_TAKEN, "max_nodes") and value not in _UNSET:
            return None
    if options.max_nodes != unlimited:
        return None
    shapes = options.shapes or {}
    if any(isinstance(extent, str) for shape in shapes.values() for extent in shape):
        return None
    first = first_program(model, targets[0], {name: [int(e) for e in shape] for name, shape in shapes.items()})
    if first is None:
        return None
    try:
        return replace(first, replacement=BackgroundCompile(model, targets[0], options.shapes, entry))
    except OSError:
        return None
