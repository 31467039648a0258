"""How the states of a program grow: along which axis, and from which number of steps to which.

It is text in the metadata of an Executable, by program, so that files of any format may have it and loading does not
parse it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from landbridge.errors import ExecutableError
from landbridge.executable.executable import Executable
from landbridge.executable.json_form import from_json, to_json
from landbridge.executable.parts import StateGrowth

#: The key in ``Executable.metadata``.
STATES = "states"


def growths_text(growths: Mapping[str, Sequence[StateGrowth]]) -> str:
    """Returns ``growths``, by name of the program, as text for the metadata."""
    return json.dumps(to_json(growths), separators=(",", ":"))


def slides_of(executable: Executable) -> dict[str, StateGrowth]:
    """Returns the growths of those states of ``executable`` that slide, by name of the input."""
    return {each.name: each for listed in growths_of(executable).values() for each in listed if each.slides}


def program_of(executable: Executable, name: str) -> Executable:
    """Returns the program ``name`` of ``executable`` alone, as ``main``, with the growths of its own states."""
    alone, growths = executable.program(name), growths_of(executable)
    if alone is executable or not growths:
        return alone
    return replace(alone, metadata={**alone.metadata, STATES: growths_text({"main": growths.get(name, ())})})


def growths_of(executable: Executable) -> dict[str, tuple[StateGrowth, ...]]:
    """Returns the growths of the states of ``executable``, by name of the program; empty where none was found.

    Raises ExecutableError for text of another form.
    """
    text = executable.metadata.get(STATES)
    if text is None:
        return {}
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ExecutableError(f"what the file says of its states is no JSON ({error}); save it again") from None
    if not isinstance(found, dict) or not all(isinstance(each, list) for each in found.values()):
        raise ExecutableError("what the file says of its states is not an object of lists; save it again")
    return {name: tuple(from_json(StateGrowth, each) for each in listed) for name, listed in found.items()}
