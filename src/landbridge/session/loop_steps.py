"""LoopSteps: runs an ONNX ``Loop`` whose body is a separate program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from landbridge.dtypes import stored_dtype
from landbridge.errors import ShapeError
from landbridge.executable.segments import DataCall
from landbridge.records import record
from landbridge.session.body_iterations import BodyIterations
from landbridge.session.open_arguments import array_of
from landbridge.sizes.size import all_at, dimensions_of


class LoopBody(Protocol):
    """A loop body as a separate program; ``iterations`` runs several in place, where that is possible."""

    @property
    def iterations(self) -> BodyIterations | None:
        """Returns the runner of iterations in place, or None."""

    def run(self, given: Sequence[Any], known: Mapping[str, int]) -> list[Any]:
        """Returns the results for the inputs ``given``, in order; ``known``: the dimensions of the surrounding
        program.
        """


@record
class _Progress:
    """The progress of a loop: ``iteration`` iterations ran and gave ``state``; ``going``: the last condition."""

    iteration: int
    going: bool
    state: list[Any]


class LoopSteps:
    """The loop of ``call``; ``bodies`` has the body of the first iteration, if it differs, and that of all others."""

    def __init__(self, call: DataCall, bodies: Sequence[LoopBody]) -> None:
        self._call, self._bodies = call, bodies
        declared: Any = call.attributes.get("attributes", {})
        self._carried: int = declared["carried"]

    def run(self, given: Sequence[Any], known: Mapping[str, int]) -> list[np.ndarray[Any, Any]]:
        """Returns the values carried last, and the rows of all iterations; a negative trip count is 0."""
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
            )  # a single iteration is faster to run than to prepare
            taken = (
                iterations.take(now.iteration, limit, now.state, captured, known)
                if iterations is not None and pays
                else None
            )
            if taken is not None:
                now = _Progress(now.iteration + taken.count, taken.goes_on, taken.state)
                created = taken.rows
            else:
                iterations = iterations if not pays else None  # where none could run in place, it is not tried again
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
        """Returns the rows ``blocks`` joined, as output ``number``.

        Without rows, their extents are those that ``known`` dimensions give, or else 0.
        """
        spec = self._call.outputs[number]
        shapes = list(dict.fromkeys(block.shape[1:] for block in blocks))
        if len(shapes) > 1:
            raise ShapeError(f"rows of output {number} have shapes {shapes[0]} and {shapes[1]}; one shape is legal")
        if blocks:
            return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
        extents = [0 if dimensions_of([e]).keys() - known.keys() else all_at([e], known)[0] for e in spec.shape[1:]]
        return np.zeros((0, *extents), stored_dtype(spec.dtype))


def _is_true(value: Any) -> bool:
    return bool(array_of(value).reshape(-1)[0])
