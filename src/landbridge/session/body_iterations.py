"""BodyIterations: iterations of a loop whose body is one function; each uses the results of the one before in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from landbridge.errors import BindError, OutOfMemoryError, ShapeError
from landbridge.executable.instance import dimensions
from landbridge.executable.iteration_sizes import IterationsAhead, IterationSizes, Shapes, is_fixed
from landbridge.executable.parts import Function
from landbridge.executable.segments import DIMENSIONS, BodyProgram
from landbridge.memory.accesses import open_views
from landbridge.records import record
from landbridge.session.fixed_executor import FixedExecutor
from landbridge.session.open_arguments import argument, array_of
from landbridge.session.open_executor import OpenExecutor
from landbridge.sizes.size import all_at
from landbridge.vm.bound_program import BoundProgram
from landbridge.vm.iteration_memory import CarriedMemory, CollectedRows, MemoryPiece
from landbridge.vm.iteration_program import IterationArguments, IterationProgram
from landbridge.vm.resizing import Resizing

#: What runs a piece of a program.
PieceExecutor: TypeAlias = OpenExecutor | FixedExecutor
#: How many iterations are checked at once before a program is bound.
_AT_FIRST = 16


@record(frozen=True, slots=True, eq=False)
class TakenIterations:
    """The ``count`` iterations that were run: ``state`` has the carried values after the last one, ``rows`` the
    collected rows of each scan output, one array an output; ``goes_on`` is the loop condition that the last one
    returned.
    """

    count: int
    goes_on: bool
    state: list[Any]
    rows: list[np.ndarray[Any, Any]]


class BodyIterations:
    """Runs iterations of the loop body ``body``, which has ``carried`` carried values and consists of one ``function``,
    the one of ``executor``.

    ``appended``: the indices of those carried values that each iteration returns with new elements appended to what it
    was given.
    """

    def __init__(
        self,
        body: BodyProgram,
        carried: int,
        appended: Sequence[int],
        function: Function,
        executor: PieceExecutor,
    ) -> None:
        self._body, self._function, self._executor = body, function, executor
        self._captured = body.inputs[2 + carried :]
        self.given, self.rows = body.outputs[1 : 1 + carried], body.outputs[1 + carried :]
        guards = (*body.guards, *function.guards)
        self.sizes = IterationSizes(body.inputs[2 : 2 + carried], self.given, guards, body.dimensions)
        self.arguments = _arguments(body, carried, appended, function)
        #: The dimensions that the surrounding program provides.
        self._needed = dimensions(function).keys() - self.sizes.names
        self._iterations: IterationProgram | None = None
        self._is_possible = True

    @staticmethod
    def of(
        body: BodyProgram,
        carried: int,
        appended: Sequence[int],
        function: Function,
        executor: PieceExecutor,
    ) -> BodyIterations | None:
        """Returns the BodyIterations of ``body``. None where they cannot run in place: its outputs are not exactly
        those of ``function``, one has strides, an input's elements are dimensions, or a row's size depends on what is
        carried.
        """
        outputs = {spec.name for spec in function.outputs}
        specs = (*function.inputs, *function.outputs)
        if (
            len(outputs) < len(body.outputs)
            or outputs != {spec.name for spec in body.outputs}
            or any(spec.strides for spec in specs)
            or any(spec.elements for spec in body.inputs)
        ):
            return None
        created = BodyIterations(body, carried, appended, function, executor)
        rows = all(is_fixed(spec, created.sizes.names) for spec in created.rows)
        return created if created.sizes.are_known and rows and created._needed <= {*body.dimensions} else None

    def take(
        self, first: int, limit: int | None, state: Sequence[Any], captured: Sequence[Any], known: Mapping[str, int]
    ) -> TakenIterations | None:
        """Run iterations from number ``first`` on, starting with ``state``, until ``limit`` (None: no limit) or until
        one returns that the loop ends.

        Fewer are run where the sizes of an iteration are not legal, or its memory is not available. ``captured`` are
        the values of the surrounding program that the body uses, ``known`` the sizes of that program's dimensions.
        Returns None where no iteration was run.
        """
        around = {name: known[name] for name in self._body.dimensions if name in known}
        if open_views or not self._is_possible or not self._takes(captured, around) or self._needed - around.keys():
            return None
        run = _Run(self, first, limit, state, captured, around)
        while (ahead := run.ahead()) is not None:
            before = run.count
            for enough in (False, True):
                self._with_program(ahead, run.take, enough=enough)
                if run.count > before:
                    break
            else:
                break
        return run.taken() if run.count else None

    @property
    def most_ahead(self) -> int:
        """Returns how many iterations are checked at once."""
        return _AT_FIRST if self._iterations is None else self._iterations.most_ahead

    def _takes(self, captured: Sequence[Any], around: Mapping[str, int]) -> bool:
        """Returns whether ``captured`` have the shapes that the body declares for them, where ``around`` gives the
        dimensions.
        """
        try:
            return all(
                list(np.shape(value)) == all_at(spec.shape, around)
                for spec, value in zip(self._captured, captured, strict=True)
            )
        except KeyError:
            return False

    def _with_program(
        self, ahead: IterationsAhead, take: Callable[[IterationProgram], object], *, enough: bool
    ) -> None:
        """Call ``take`` with the program of iterations; with ``enough`` its memory is first made large enough for the
        largest iteration of ``ahead``.

        Does not call it where memory or sizes do not permit it.
        """
        executor = self._executor
        if not isinstance(executor, OpenExecutor):
            self._with(take, executor.program, None)
            return
        last = {name: value if isinstance(value, int) else int(value[-1]) for name, value in ahead.values.items()}
        if enough:
            self._iterations = None  # its memory may no longer be needed
        with suppress(ShapeError, BindError, OutOfMemoryError):  # memory of iterations that may never come
            executor.with_shared(last, partial(self._with, take), enough=enough)

    def _with(self, take: Callable[[IterationProgram], object], bound: BoundProgram, resizing: Resizing | None) -> None:
        iterations = self._iterations
        if iterations is None or iterations.bound is not bound:
            self._is_possible = IterationProgram.are_possible(bound)
            if not self._is_possible:
                return
            iterations = self._iterations = IterationProgram(bound, self._function, resizing, self.arguments)
        try:
            take(iterations)
        finally:
            bound.calls.release()


class _Run:
    """The state of one run of a loop; ``count`` iterations have run so far."""

    def __init__(
        self,
        of: BodyIterations,
        first: int,
        limit: int | None,
        state: Sequence[Any],
        captured: Sequence[Any],
        around: Mapping[str, int],
    ) -> None:
        self._of, self._first, self._state, self._captured, self._around = of, first, state, captured, around
        self._most = None if limit is None else limit - first
        self._shapes: Shapes = tuple(np.shape(value) for value in state)
        self._carried: list[CarriedMemory] = []
        self._rows: list[CollectedRows] = []
        self._goes_on = True
        self._ahead: IterationsAhead | None = None
        self.count = 0

    def ahead(self) -> IterationsAhead | None:
        """Returns the next iterations; None where there are none, or none that can run in place."""
        left = None if self._most is None else self._most - self.count
        if self._ahead is None and self._goes_on and left != 0:
            most = self._of.most_ahead if left is None else min(left, self._of.most_ahead)
            self._ahead = self._of.sizes.ahead(self._shapes, self._around, most)
        return self._ahead

    def take(self, iterations: IterationProgram) -> None:
        """Run iterations until none is left, or the memory of ``iterations`` is too small for the next one.

        Runs none while another program or a device shares bound memory, as then each iteration must be checked.
        """
        inputs = self._of.arguments.captured
        captured = [
            iterations.borrow(register, argument(self._captured[n]), np.shape(self._captured[n]))
            for register, n in inputs
        ]
        if not self._carried:
            self._begin(iterations)
        if iterations.bound.entry.shares:  # others may be working on borrowed memory: each iteration must check
            return
        while (ahead := self.ahead()) is not None:
            are_last = self._most is not None and self.count + ahead.count >= self._most
            taken = iterations.take(
                ahead, self._first + self.count, self._carried, self._rows, captured, are_last=are_last
            )
            if taken is None:
                return
            self.count, self._goes_on, self._ahead = self.count + taken.count, taken.goes_on, None
            self._shapes = self._of.sizes.shaped(ahead.shapes[taken.count].tolist())

    def _begin(self, iterations: IterationProgram) -> None:
        io = iterations.bound.memory.io
        for (register, _), value, shape, spec in zip(
            self._of.arguments.carried, self._state, self._shapes, self._of.given, strict=True
        ):
            now = MemoryPiece(0, 0, value) if register is None else iterations.borrow(register, argument(value), shape)
            self._carried.append(CarriedMemory(io, spec, now))
        for spec in self._of.rows:
            self._rows.append(CollectedRows(io, spec, tuple(all_at(spec.shape, self._around)), self._most))

    def taken(self) -> TakenIterations:
        """Returns the results of the iterations so far."""
        pairs = zip(self._carried, self._shapes, strict=True)
        state = [each.now.tensor(each.spec.dtype, shape) for each, shape in pairs]
        return TakenIterations(self.count, self._goes_on, state, [array_of(rows.tensor()) for rows in self._rows])


def _arguments(body: BodyProgram, carried: int, appended: Sequence[int], function: Function) -> IterationArguments:
    """Returns the position of each input and output of ``function``, which is all of ``body``, by its role in
    the loop.
    """
    takes = {spec.name: number for number, spec in enumerate(function.inputs)}
    gives = {spec.name: number for number, spec in enumerate(function.outputs, len(function.inputs))}
    number, goes_on, *inputs = (takes.get(spec.name) for spec in body.inputs)
    again, *outputs = (gives[spec.name] for spec in body.outputs)
    captured = ((register, n) for n, register in enumerate(inputs[carried:]) if register is not None)
    return IterationArguments(
        number,
        goes_on,
        takes.get(DIMENSIONS),
        tuple(zip(inputs[:carried], outputs[:carried], strict=True)),
        tuple(captured),
        tuple(outputs[carried:]),
        again,
        tuple(appended),
    )
