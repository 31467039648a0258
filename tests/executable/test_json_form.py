"""Annotations of what a file holds mean what ``typing`` says that they mean."""

from __future__ import annotations

import typing
from dataclasses import fields, is_dataclass

import pytest

from landbridge.executable import instructions, json_form, manifest, parts

CLASSES = [
    value
    for module in (instructions, manifest, parts)
    for value in vars(module).values()
    if isinstance(value, type) and is_dataclass(value) and value.__module__ == module.__name__
]
#: Have arrays or bytes, and no JSON form therefore.
EXCLUDED = {"CodeImage", "ModuleImage", "Executable"}


@pytest.mark.parametrize("cls", [c for c in CLASSES if c.__name__ not in EXCLUDED], ids=lambda c: c.__name__)
def test_annotations_are_read_as_typing_reads_them(cls):
    wanted = typing.get_type_hints(cls)
    assert {f.name: json_form._meaning(f.type, cls.__module__) for f in fields(cls)} == {
        f.name: wanted[f.name] for f in fields(cls)
    }
