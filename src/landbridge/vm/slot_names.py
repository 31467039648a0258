"""Lookup of slots by name or index, with an error that proposes similar names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from landbridge.errors import InputError, UnknownArgumentError
from landbridge.executable.parts import TensorSpec
from landbridge.text.did_you_mean import did_you_mean
from landbridge.vm.slot import Slot

_Found = TypeVar("_Found")


def by_name_and_index(slots: Sequence[Slot]) -> dict[str | int, Slot]:
    """Returns ``slots`` by index and by name."""
    table: dict[str | int, Slot] = dict(enumerate(slots))
    return table | {slot.spec.name: slot for slot in slots}


def specs_by_name_and_index(specs: Sequence[TensorSpec]) -> dict[str | int, TensorSpec]:
    """Returns ``specs`` by index and by name."""
    table: dict[str | int, TensorSpec] = dict(enumerate(specs))
    return table | {spec.name: spec for spec in specs}


def find_slot(subject: str, name: Any, slots: Mapping[Any, _Found]) -> _Found:
    """Returns the ``subject`` called ``name``, a slot or a spec; raises InputError that names the legal ones."""
    try:
        return slots[name]
    except (KeyError, TypeError):
        raise unknown_slot(subject, name, slots) from None


def unknown_keyword(name: str, inputs: Sequence[str]) -> UnknownArgumentError:
    """Returns the error for a call of a Session with the keyword ``name``: inputs are given in order, or in one
    mapping.
    """
    example = f"session({{{inputs[0]!r}: array}})" if inputs else "session()"
    close = did_you_mean(name, (*inputs, "out"))
    return UnknownArgumentError(
        f"a call of a Session has no keyword {name!r}{close}; give arrays in order or in one mapping, as {example}; "
        f"inputs: {', '.join(inputs) or 'none'}, and out= is the one keyword"
    )


def find_spec(subject: str, name: object, specs: Sequence[TensorSpec]) -> TensorSpec:
    """Returns that of ``specs`` which is called ``name``; raises InputError that names the legal ones."""
    by_name = {spec.name: spec for spec in specs}
    try:
        return by_name[name]  # type: ignore[index]  # any value may be asked for
    except (KeyError, TypeError):
        raise unknown_slot(subject, name, by_name) from None


def unknown_slot(subject: str, name: object, slots: Mapping[Any, Any]) -> InputError:
    """Returns the error for a ``subject`` called ``name`` that does not exist."""
    names = [known for known in slots if isinstance(known, str)]
    if not isinstance(name, str | int):
        return InputError(
            f"no {subject} is named by a value of {type(name).__name__}; a name comes first, legal: "
            f"{', '.join(names) or 'none'}, or an index from 0"
        )
    hint = did_you_mean(str(name), names)
    if subject == "parameter":
        way_out = f"compile(..., mutable=({name!r},)) makes a weight one"
        return InputError(f"no {subject} {name!r}{hint}; legal: {', '.join(names) or 'none'}; {way_out}")
    return InputError(f"no {subject} {name!r}{hint}; legal: {', '.join(names) or 'none'}, or an index from 0")
