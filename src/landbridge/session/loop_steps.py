"""LoopSteps: an ONNX ``Loop`` whose body is a program in the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from landbridge.dtypes import numpy_dtype
from landbridge.errors import ShapeError
from landbridge.executable.segments import DataCall
from landbridge.records import record
from landbridge.session.body_iterations import BodyIterations
from landbridge.session.open_arguments import array_of
from landbridge.sizes.size import all_at, dimensions_of


class LoopBody(Protocol):
    """A program in the program: ``iterations`` takes several in place, where it can."""

    @property
    def iterations(self) -> BodyIterations | None:
        """What takes iterations of it in place."""

    def run(self, given: Sequence[Any], known: Mapping[str, int]) -> list[Any]:
        """Its results for what its inputs are, in order; ``known``: dimensions of the program around it."""


@record
class _Progress:
    """``iteration`` iterations were taken and gave ``state``; ``going``: what the last one said."""

    iteration: int
    going: bool
    state: list[Any]


class LoopSteps:
    """``call``, whose ``bodies`` are that of the first iteration, where it is another, and that of all others."""

    def __init__(self, call: DataCall, bodies: Sequence[LoopBody]) -> None:
        self._call, self._bodies = call, bodies
        declared: Any = call.attributes.get("attributes", {})
        self._carried: int = declared["carried"]

    def run(self, given: Sequence[Any], known: Mapping[str, int]) -> list[np.ndarray[Any, Any]]:
        """What is carried last, and the rows of all iterations; a count below 0 is none."""
        count, condition, *rest = given
        captured = rest[self._carried :]
        limit = None if count is None else int(array_of(count).reshape(-1)[0])
        now = _Progress(0, condition is None or _is_true(condition), rest[: self._carried])
        rows: list[list[np.ndarray[Any, Any]]] = [[] for _ in self._call.outputs[self._carried :]]
        iterations = self._bodies[-1].iterations
        while now.going and (limit is None or now.iteration < limit):
            is_another = now.iteration == 0 and len(self._bodies) > 1
            pays = not is_another and (
                limit is None or limit - now.iteration > 1
            )  # one alone is sooner run than prepared
            taken = (
                iterations.take(now.iteration, limit, now.state, captured, known)
                if iterations is not None and pays
                else None
            )
            if taken is not None:
                now = _Progress(now.iteration + taken.count, taken.goes_on, taken.state)
                created = taken.rows
            else:
                iterations = iterations if not pays else None  # where none could be taken, it is not asked again
                body = self._bodies[0 if is_another else -1]
                values = [np.asarray(now.iteration, np.int64), np.asarray(now.going)]
                again, *results = body.run([*values, *now.state, *captured], known)
                now = _Progress(now.iteration + 1, _is_true(again), results[: self._carried])
                created = [array_of(row)[None] for row in results[self._carried :]]
            for collected, block in zip(rows, created, strict=True):
                collected.append(block)
        return [
            *map(array_of, now.state),
            *(self._joined(n, each, known) for n, each in enumerate(rows, self._carried)),
        ]

    def _joined(
        self, number: int, blocks: Sequence[np.ndarray[Any, Any]], known: Mapping[str, int]
    ) -> np.ndarray[Any, Any]:
        """The rows that ``blocks`` are, as output ``number``: where there are none, their extents are those that
        ``known`` dimensions say, and else 0."""
        spec = self._call.outputs[number]
        shapes = list(dict.fromkeys(block.shape[1:] for block in blocks))
        if len(shapes) > 1:
            raise ShapeError(f"rows of output {number} have shapes {shapes[0]} and {shapes[1]}; one shape is legal")
        if blocks:
            return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
        extents = [0 if dimensions_of([e]).keys() - known.keys() else all_at([e], known)[0] for e in spec.shape[1:]]
        return np.zeros((0, *extents), numpy_dtype(spec.dtype))


def _is_true(value: Any) -> bool:
    return bool(array_of(value).reshape(-1)[0])
