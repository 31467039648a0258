"""Option handling that the target kinds with a grid of workgroups share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from landbridge.errors import TargetError
from landbridge.memory_kind import GLOBAL_SCOPE
from landbridge.targets.kind import Options, OptionValue

_FLOAT_BITS = 32


def declared(options: Options, name: str) -> int | None:
    """Returns the number that an option declares; None if it is unset."""
    value = options.get(name)
    return value if isinstance(value, int) else None


def powers_of_two(kind: str, names: Sequence[str]) -> Callable[[dict[str, OptionValue]], dict[str, OptionValue]]:
    """Returns a parser for target kind ``kind`` that raises TargetError if an option of ``names`` is no power of
    two."""

    def check(given: dict[str, OptionValue]) -> dict[str, OptionValue]:
        for name in names:
            value = given.get(name, 1)
            if isinstance(value, int) and value & (value - 1):
                raise TargetError(f"target {kind!r}: option {name!r} was given {value}; legal: a power of two")
        return given

    return check


def vector_width(options: Options) -> dict[str, object]:
    """Returns the attrs of a target: ``vector-width``, the floats of one vector."""
    return {"vector-width": max(1, (declared(options, "vector-bits") or 0) // _FLOAT_BITS)}


def shared_host_memory(options: Options) -> tuple[tuple[str, str], ...]:
    """Returns the CPU's memory, if device and host use the same and the driver imports it."""
    in_place = options["unified-memory"] is True and options["import-alignment"] != 0
    return (("cpu", GLOBAL_SCOPE),) if in_place else ()
