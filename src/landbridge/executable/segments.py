"""Segments: a program that is cut where data decide sizes. Each segment is a function of known or open sizes.

They are text in the metadata of an Executable, whose ``main`` then has the inputs and outputs of the whole and no
instructions. Values are by name: those of inputs, of outputs of functions, and of results of the operators between.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from landbridge.errors import ExecutableError
from landbridge.executable.executable import SEGMENTS, Executable
from landbridge.executable.json_form import from_json, to_json
from landbridge.executable.parts import SizeGuard, TensorSpec
from landbridge.records import record

#: The name of the input that contains a function's dimensions, if it has no other source for them.
DIMENSIONS = "landbridge.dimensions"
#: Instead of a host operator: nothing runs, and the elements of a value are dimensions.
READ = "landbridge.read"
#: In place of a host operator: the first body runs, then the last one again and again, as an ONNX ``Loop`` does.
LOOP = "landbridge.loop"
#: In place of a host operator: the first of two bodies where the first input is true, else the second.
BRANCH = "landbridge.branch"


@record(frozen=True)
class DataCall:
    """A host operator whose results determine dimensions.

    ``inputs`` are names of values, empty where one is left out. ``outputs``: names, shapes and dtypes of the results;
    extents that are dimensions of no input are known then. ``read``: one value whose elements are dimensions.
    ``supposed``: those of these dimensions that are assumed not to be 0. ``bodies``: what a LOOP or BRANCH runs.
    """

    operator: str
    node: str
    inputs: tuple[str, ...]
    outputs: tuple[TensorSpec, ...]
    read: tuple[TensorSpec, ...]
    attributes: Mapping[str, object]
    supposed: tuple[str, ...] = ()
    bodies: tuple[BodyProgram, ...] = ()


@record(frozen=True)
class Segment:
    """A function of the Executable, or none where nothing is computed, and the host operator that is called after
    it.
    """

    function: str
    calls: tuple[DataCall, ...]


@record(frozen=True)
class BodyProgram:
    """A program in a program, with its own segments: ``inputs`` and ``outputs`` by their own names.

    ``dimensions`` are those of the enclosing program that it uses, ``guards`` the conditions for a run of it.
    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    segments: tuple[Segment, ...]
    dimensions: tuple[str, ...] = ()
    guards: tuple[SizeGuard, ...] = ()


def segments_text(segments: Sequence[Segment]) -> str:
    """Returns ``segments`` as the text of the metadata."""
    return json.dumps(to_json(tuple(segments)), separators=(",", ":"))


def segments_of(executable: Executable) -> tuple[Segment, ...]:
    """Returns the segments of ``executable``, in order; none where it is whole. Raises ExecutableError for text of
    another form.
    """
    text = executable.metadata.get(SEGMENTS)
    if text is None:
        return ()
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ExecutableError(f"what the file says of its segments is no JSON ({error}); save it again") from None
    if not isinstance(found, list):
        raise ExecutableError("what the file says of its segments is no JSON list; save it again")
    segments = tuple(from_json(Segment, each) for each in found)
    for segment in _all_of(segments):
        if segment.function and segment.function not in executable.functions:
            raise ExecutableError(f"a segment runs {segment.function!r}, which the file has not; save it again")
    return segments


def _all_of(segments: Sequence[Segment]) -> Iterator[Segment]:
    """Yields ``segments``, and those of the bodies that they run."""
    for segment in segments:
        yield segment
        for call in segment.calls:
            for body in call.bodies:
                yield from _all_of(body.segments)
