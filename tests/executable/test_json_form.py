"""Every field of what a file holds has a reader of its type, which refuses values of other types."""

from __future__ import annotations

import pytest

from landbridge.errors import ExecutableError
from landbridge.executable import instructions, json_form, manifest, parts, segments
from landbridge.executable.json_form import size_of_text
from landbridge.records import record

CLASSES = [
    value
    for module in (instructions, manifest, parts, segments)
    for value in vars(module).values()
    if isinstance(value, type) and hasattr(value, "__dataclass_fields__") and value.__module__ == module.__name__
]
#: Have arrays or bytes, and no JSON form therefore.
EXCLUDED = {"CodeImage", "ModuleImage", "Executable"}


@record(frozen=True)
class Odd:
    """A field of a type that files do not have."""

    value: complex


@pytest.mark.parametrize("cls", [c for c in CLASSES if c.__name__ not in EXCLUDED], ids=lambda c: c.__name__)
def test_every_field_has_a_reader_of_its_type(cls):
    readers = json_form._field_readers(cls)
    assert list(readers) == list(cls.__dataclass_fields__)
    for name, reader in readers.items():
        if cls.__dataclass_fields__[name].type != "object":
            with pytest.raises(ExecutableError, match="corrupt file"):
                reader(1.5, size_of_text)


def test_a_type_without_a_reader_is_named():
    with pytest.raises(TypeError, match="complex"):
        json_form.from_json(Odd, {"value": 1})


def test_a_state_grows_from_a_position_that_counts_from_its_last_element():
    growth = parts.StateGrowth("past", 2, -3, 1, "positions", has_each=True)
    assert json_form.from_json(parts.StateGrowth, json_form.to_json(growth)) == growth
