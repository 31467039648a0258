"""Reads and checks the memory that the dict form of a target declares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from landbridge.errors import TargetError
from landbridge.memory_kind import MemoryKind
from landbridge.targets.kind import Options, TargetKind
from landbridge.text.did_you_mean import did_you_mean


def memory_kinds(kind: TargetKind, options: Options, declared: object) -> tuple[MemoryKind, ...]:
    """Returns a MemoryKind for each scope, by default those of ``kind``; raises TargetError for an illegal
    declaration."""
    if declared is None:
        return _little_endian(kind.name, kind.memory(options) if kind.memory else ())
    if not isinstance(declared, list | tuple):
        raise TargetError(f"target {kind.name!r}: memory must be a list of memory kinds, not {declared!r}")
    kinds = tuple(_memory_kind(kind.name, entry) for entry in declared)
    scopes = [memory.scope for memory in kinds]
    if len(set(scopes)) != len(scopes):
        raise TargetError(f"target {kind.name!r}: a memory scope is stated twice in {scopes}; state each once")
    return _little_endian(kind.name, kinds)


def _little_endian(target_kind: str, kinds: tuple[MemoryKind, ...]) -> tuple[MemoryKind, ...]:
    """Returns ``kinds``; raises TargetError for one whose numbers are big-endian."""
    for memory in kinds:
        if memory.byte_order != "little":
            raise TargetError(
                f"target {target_kind!r}: memory {memory.scope!r} holds {memory.byte_order}-endian numbers, and code "
                "is made for little-endian ones alone; run the model on a little-endian device"
            )
    return kinds


def _memory_kind(target_kind: str, entry: object) -> MemoryKind:
    if isinstance(entry, MemoryKind):
        return entry
    if not isinstance(entry, Mapping):
        raise TargetError(f"target {target_kind!r}: {entry!r} is not a memory kind; state a dict with 'scope'")
    known = [field.name for field in fields(MemoryKind)]
    facts = {str(k): tuple(_frozen(v)) if isinstance(v, list) else v for k, v in entry.items()}
    for name in facts:
        if name not in known:
            raise TargetError(
                f"target {target_kind!r}: a memory kind has no field {name!r}{did_you_mean(name, known)}; "
                f"legal: {', '.join(known)}"
            )
    try:
        return MemoryKind(**facts)  # type: ignore[arg-type]  # the dataclass checks its own fields
    except (TypeError, ValueError) as error:
        raise TargetError(f"target {target_kind!r}: memory kind {facts}: {error}") from error


def _frozen(values: list[object]) -> tuple[object, ...]:
    return tuple(_frozen(v) if isinstance(v, list) else v for v in values)


def shared_scopes(kind: TargetKind, options: Options, declared: object) -> tuple[tuple[str, str], ...]:
    """Returns the (device name, scope) pairs whose memory is used in place, by default those of ``kind``."""
    if declared is None:
        return kind.shares(options) if kind.shares else ()
    pairs = [words("shares", pair) for pair in declared] if isinstance(declared, list | tuple) else [()]
    if any(len(pair) != 2 for pair in pairs):
        raise TargetError(f"shares must be a list of (device name, scope) pairs, not {declared!r}")
    return tuple((pair[0], pair[1]) for pair in pairs)


def words(name: str, value: object) -> tuple[str, ...]:
    """Returns ``value``, the form's entry ``name``, as a tuple of strings; raises TargetError for another type."""
    if not isinstance(value, list | tuple) or not all(isinstance(word, str) for word in value):
        raise TargetError(f"{name} must be a list of words, not {value!r}")
    return tuple(value)
