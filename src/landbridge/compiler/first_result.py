"""A first program at once, and the full one from a process in the background: ``compile(..., optimize="fast")``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path

from landbridge.compiler.background_compile import BackgroundCompile
from landbridge.compiler.cache import CacheEntry, look_up
from landbridge.compiler.options import CompileOptions
from landbridge.executable.executable import Executable
from landbridge.executable.parts import VDevice
from landbridge.first_tier.program import first_program
from landbridge.process.sanitizing import sanitize_requested
from landbridge.targets import Target

#: The only options that a first program takes: all others must have the values that mean nothing.
_TAKEN = ("shapes", "dims")
_UNSET: tuple[object, ...] = (None, (), {}, False, "error")


def first_then_full(
    model: object, targets: Sequence[Target], options: CompileOptions, unlimited: int, entry: CacheEntry
) -> Executable | None:
    """Returns a first program for ``model`` whose ``replacement`` is being compiled into ``entry``.

    None where there is none: for options other than ``shapes`` and ``dims`` that are numbers, more nodes than
    ``unlimited``, models that are not ONNX files or bytes, and where no process can be started.
    """
    if isinstance(model, str) and "\n" not in model:
        model = Path(model)
    if not isinstance(model, bytes | Path) or list(targets) != [Target("llvm")]:
        return None
    for each in fields(options):
        value = getattr(options, each.name)
        if each.name not in (*_TAKEN, "max_nodes") and value not in _UNSET:
            return None
    if options.max_nodes != unlimited:
        return None
    shapes = options.shapes or {}
    if any(isinstance(extent, str) for shape in shapes.values() for extent in shape):
        return None
    dims = {name: each for name, each in (options.dims or {}).items() if isinstance(each, int)}
    if len(dims) < len(options.dims or {}):
        return None
    first = first_program(model, targets[0], {name: [int(e) for e in shape] for name, shape in shapes.items()}, dims)
    if first is None:
        return None
    try:
        return replace(first, replacement=BackgroundCompile(model, targets[0], options.shapes, dims or None, entry))
    except OSError:
        return None


def full_in_background(
    model: bytes | Path, dims: Mapping[str, int], instead: str
) -> Executable | BackgroundCompile | None:
    """Returns the program of ``model``, an ONNX file or its bytes, with its open dimensions except ``dims``, for this
    host and without other options of ``landbridge.compile``: from the cache, else the compile that was started in the
    background.

    ``instead`` is for that one's warning. Returns None without a cache, where no process can be started, and where
    kernels have to test indices.
    """
    target = Target("llvm")
    options = CompileOptions(dims=dict(dims) or None, sanitize=sanitize_requested())
    entry = None if options.sanitize else look_up(model, (target,), (VDevice(target.device_types[0], 0),), options)
    if entry is None or entry.found is not None:
        return None if entry is None else entry.found
    try:
        return BackgroundCompile(model, target, None, dict(dims) or None, entry, instead)
    except OSError:
        return None
