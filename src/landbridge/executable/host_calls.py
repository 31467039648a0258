"""The Python functions that a program calls: host builtins of its instructions, host operators between its segments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from landbridge.executable.executable import Executable
from landbridge.executable.instructions import HostCall, flattened
from landbridge.executable.segments import BRANCH, LOOP, READ, Segment, segments_of


def host_calls(executable: Executable) -> dict[str, str]:
    """Returns the functions that ``executable`` calls: the module that registered each for the compile, by its name.

    The module is empty for functions of Landbridge itself. Raises ExecutableError for segments that cannot be read.
    """
    return dict(_calls(executable))


def _calls(executable: Executable) -> Iterator[tuple[str, str]]:
    for function in executable.functions.values():
        for instruction in flattened(function.instructions):
            if isinstance(instruction, HostCall):
                yield instruction.builtin, _module(instruction.attributes)
    yield from _calls_between(segments_of(executable))


def _calls_between(segments: Sequence[Segment]) -> Iterator[tuple[str, str]]:
    """Yields name and module of each host operator that is called between ``segments``, and in the bodies of loops and
    branches there.
    """
    for segment in segments:
        for call in segment.calls:
            if call.operator not in (READ, LOOP, BRANCH):
                yield call.operator, _module(call.attributes)
            for body in call.bodies:
                yield from _calls_between(body.segments)


def _module(attributes: Mapping[str, object]) -> str:
    return str(attributes.get("module", ""))
