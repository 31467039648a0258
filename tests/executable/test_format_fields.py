"""What an ``.lbx`` says, field by field, is that of its format version: a field more or fewer is a new version.

``stored/fields.json`` has the newest version and the fields of each record. Who changes a record that files hold raises
``FORMAT_VERSION``, stores files of the new version (``test_stored_files``) and writes this one again:
``python -m tests.executable.test_format_fields``.
"""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

from landbridge.executable.header import FORMAT_VERSION
from landbridge.executable.instructions import Instruction
from landbridge.executable.manifest import Manifest
from landbridge.executable.parts import KernelFacts
from landbridge.executable.segments import Segment

STORED = Path(__file__).with_name("stored") / "fields.json"


def classes(hint: Any) -> set[type[Any]]:
    """The records in an annotation, and those in the fields of these."""
    found: set[type[Any]] = set()
    pending = [hint]
    while pending:
        each = pending.pop()
        pending += get_args(each)
        if isinstance(each, type) and is_dataclass(each) and each not in found:
            found.add(each)
            pending += get_type_hints(each).values()
    return found


def declared() -> dict[str, Any]:
    """The format version, and the names of the fields of all records that files hold, in their order."""
    roots = [Manifest, Segment, KernelFacts, *get_args(Instruction)]
    found = {each.__name__: [f.name for f in fields(each)] for root in roots for each in classes(root)}
    return {"version": FORMAT_VERSION, "fields": dict(sorted(found.items()))}


def test_fields_are_those_of_the_version() -> None:
    stored, found = json.loads(STORED.read_text()), declared()
    changed = [
        name for name in stored["fields"] | found["fields"] if stored["fields"].get(name) != found["fields"].get(name)
    ]
    assert not changed, f"files say something else of {changed}: raise FORMAT_VERSION above {stored['version']}"
    assert stored == found


def test_records_within_records_are_found() -> None:
    names = {each.__name__ for root in (Manifest, Segment, Instruction) for each in classes(root)}
    assert {"TensorSpec", "FunctionEntry", "Launch", "DataCall", "BodyProgram", "Slice", "Loop"} <= names


if __name__ == "__main__":
    STORED.write_text(json.dumps(declared(), indent=1) + "\n")
