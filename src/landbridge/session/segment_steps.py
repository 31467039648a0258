"""SegmentSteps: the segments of a cut program, the host operators between them, and separate programs that they
call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

import numpy as np

from landbridge.dtypes import dtype_name, stored_dtype
from landbridge.errors import ShapeError
from landbridge.executable.bound_sizes import BoundSizes, says_dimension
from landbridge.executable.executable import Executable
from landbridge.executable.instance import check_guard
from landbridge.executable.parts import Function, SizeGuard, TensorSpec
from landbridge.executable.segments import BRANCH, DIMENSIONS, LOOP, READ, BodyProgram, DataCall, Segment
from landbridge.process.available_memory import check_limit
from landbridge.session.body_iterations import BodyIterations, PieceExecutor
from landbridge.session.fixed_executor import FixedExecutor
from landbridge.session.given_parameters import GivenParameters
from landbridge.session.loop_steps import LoopSteps
from landbridge.session.open_arguments import argument, array_of
from landbridge.session.open_executor import OpenExecutor
from landbridge.session.open_instances import elements_of
from landbridge.session.session_options import BindOptions
from landbridge.sizes.size import Extent, Size, dimensions_of, of_symbol
from landbridge.tensor import Tensor
from landbridge.vm.entry import Entry
from landbridge.vm.host_functions import HostFunction

_T = TypeVar("_T")

#: A function that makes the executor of the program's function of that name.
MakesPiece: TypeAlias = "Callable[[str], ProgramPiece]"
#: An extent, and the name of the dimension that it is.
_Form: TypeAlias = tuple[Extent, str | None]


class SegmentSteps:
    """The ``segments`` of a program with ``inputs``, in order; the ``guards`` must hold for the sizes of each run."""

    def __init__(
        self,
        segments: Sequence[Segment],
        inputs: Sequence[TensorSpec],
        guards: Sequence[SizeGuard],
        piece: MakesPiece,
    ) -> None:
        self._inputs, self._guards = inputs, guards
        #: Inputs whose extents or elements do not directly give dimensions.
        self._checked = [spec for spec in inputs if not all(map(says_dimension, (*spec.shape, *spec.elements)))]
        self._steps: list[tuple[ProgramPiece | None, list[_Call]]] = [
            (piece(each.function) if each.function else None, [_Call(call, piece) for call in each.calls])
            for each in segments
        ]

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def alone(self) -> ProgramPiece | None:
        """Returns the only piece, where the program has no other; else None."""
        match self._steps:
            case [(piece, [])]:
                return piece
            case _:
                return None

    def pieces(self) -> Iterator[ProgramPiece]:
        """Yields the pieces of these steps, and of the separate programs that they call."""
        for piece, calls in self._steps:
            if piece is not None:
                yield piece
            for call in calls:
                for body in call.bodies:
                    yield from body.pieces()

    def run(
        self, given: Mapping[str, Any], borrowed: Set[str], around: Mapping[str, int] | None = None
    ) -> dict[str, Any]:
        """Returns all values of a run, those of ``given`` included, by name.

        ``borrowed``: the names of those of ``given`` that must be used in place, or are refused. ``around``: the
        dimensions of the program that runs these segments. Raises ShapeError for sizes that do not fit.
        """
        sizes = BoundSizes()
        sizes.values.update(around or {})
        for spec in self._inputs:
            shape = np.shape(given[spec.name])
            if shape != spec.shape:  # a value with its declared shape gives no dimensions
                sizes.add(spec, shape)
            if spec.elements:
                sizes.add_elements(spec, elements_of(given[spec.name]))
        values, known = dict(given), sizes.values
        guards: Sequence[SizeGuard] = self._guards
        checked: Sequence[TensorSpec] = self._checked
        for piece, calls in self._steps:
            checked = _compared(checked, sizes, given)
            guards = _held(guards, known)
            if piece is not None:
                values |= piece.run(values, known, borrowed)
            for call in calls:
                call.run(values, known)
        return values


def _compared(specs: Sequence[TensorSpec], sizes: BoundSizes, given: Mapping[str, Any]) -> list[TensorSpec]:
    """Checks the inputs ``specs`` whose dimensions are all in ``sizes``; returns the others, which data decide later.

    Raises ShapeError for one that does not fit.
    """
    left = []
    for spec in specs:
        if dimensions_of([*spec.shape, *spec.elements]).keys() <= sizes.values.keys():
            sizes.check(spec, np.shape(given[spec.name]), elements_of(given[spec.name]) if spec.elements else ())
        else:
            left.append(spec)
    return left


def _held(guards: Sequence[SizeGuard], known: Mapping[str, int]) -> list[SizeGuard]:
    """Checks the ``guards`` whose dimensions are all in ``known``; returns the others, which are checked later.

    Raises ShapeError for one that is violated.
    """
    left = []
    for guard in guards:
        names = dimensions_of([guard.found, guard.legal]).keys()
        if not names <= known.keys():
            left.append(guard)
        else:
            check_guard(guard, _at(guard.found, known), _at(guard.legal, known), {name: known[name] for name in names})
    return left


class ProgramPiece:
    """One function of a program, with an executor of its own, which is made as that of the whole program."""

    def __init__(
        self, executable: Executable, name: str, entry: Entry, options: BindOptions, params: GivenParameters
    ) -> None:
        function = executable.functions[name]
        self.function = replace(function, name="main")
        metadata = {key: text for key, text in executable.metadata.items() if key in ("model", "on_mismatch")}
        memory = tuple(replace(report, program="main") for report in executable.memory if report.program == name)
        alone = replace(executable, functions={"main": self.function}, metadata=metadata, memory=memory)
        self._executable = alone
        self.executor: PieceExecutor = (
            OpenExecutor(alone, entry, options, params)
            if alone.is_open
            else FixedExecutor(alone, entry, options, params)
        )
        self._dimensions = dimensions_of(e for spec in function.inputs for e in (*spec.shape, *spec.elements))
        self._inputs = [spec.name for spec in function.inputs]
        self._outputs = [spec.name for spec in function.outputs]

    def prepare(self, sizes: Mapping[str, Any]) -> None:
        known = self._executable.dimensions
        if known and known.keys() <= sizes.keys():
            self.executor.prepare({name: each for name, each in sizes.items() if name in known})

    def set_params(self, values: Mapping[str, Any]) -> None:
        if mine := self._mine(values):
            self.executor.set_params(mine)

    def borrow_params(self, values: Mapping[str, Tensor]) -> Callable[[], object]:
        """Returns a function that binds those of ``values`` that are weights of the piece in place."""
        return self.executor.borrow_params(self._mine(values))

    def _mine(self, values: Mapping[str, _T]) -> dict[str, _T]:
        """Returns those of ``values`` that are weights of the piece."""
        names = {spec.name for spec in self.function.parameters}
        return {name: value for name, value in values.items() if name in names}

    def run(self, values: Mapping[str, Any], known: Mapping[str, int], borrowed: Set[str]) -> dict[str, Any]:
        """Returns the outputs of the function by name, for the inputs of it that ``values`` has by name.

        ``known`` are the sizes of dimensions. Inputs in ``borrowed`` are passed as they are, so the Session uses them
        in place or refuses them. Where a dimension is 0 and no output has elements, no code runs. Raises ShapeError
        where a dimension is 0 and the code requires at least 1.
        """
        empty = [name for name in self._dimensions if known.get(name) == 0]
        if empty and (outputs := _without_elements(self.function, known)) is not None:
            return outputs
        narrow = [name for name in empty if self._dimensions[name].low > 0]
        if narrow:
            raise ShapeError(
                f"{', '.join(sorted(narrow))} is 0 in this run, and the program was compiled only for at least 1: an "
                "operator that uses it is not defined, or has no code, for 0"
            )
        given = [
            self._dimensions_at(known)
            if name == DIMENSIONS
            else (values[name] if name in borrowed else argument(values[name]))
            for name in self._inputs
        ]
        executor = self.executor
        found = executor.call_at(known, given) if isinstance(executor, OpenExecutor) else executor.call(given, None)
        return dict(zip(self._outputs, found, strict=True))

    def _dimensions_at(self, known: Mapping[str, int]) -> np.ndarray[Any, Any]:
        """Returns the input of the function that holds dimensions: int64, one element for each, with their sizes in
        ``known``.
        """
        spec = next(spec for spec in self.function.inputs if spec.name == DIMENSIONS)
        try:
            return np.array([_at(e, known) for e in spec.elements], np.int64)
        except KeyError as error:
            raise ShapeError(
                f"{self.function.outputs[0].name!r} is computed from an extent of an input "
                f"that has to be an expression of {error.args[0]!r}, which data decide later; compile with shapes= "
                "that have numbers for it"
            ) from error


class _Call:
    """A host operator, a loop or branch of separate programs, or elements that are read, and the dimensions that its
    results determine.
    """

    def __init__(self, call: DataCall, piece: MakesPiece) -> None:
        self._call = call
        declared: Any = call.attributes.get("attributes", {})
        appended = declared.get("appended", ())
        self.bodies = [_Body(each, piece, declared.get("carried"), appended) for each in call.bodies]
        self._loop = LoopSteps(call, self.bodies) if call.operator == LOOP else None
        self._function: HostFunction | None = None
        if call.operator not in (READ, LOOP, BRANCH):
            self._function = HostFunction(call.operator, call.attributes)
        self._read = [(spec.name, _text(spec.elements)) for spec in call.read]
        self._extents = [_text(spec.shape) for spec in call.outputs]

    def run(self, values: dict[str, Any], known: dict[str, int]) -> None:
        """Execute the call on ``values``; its results are added to them by name, and the dimensions that these
        determine to ``known``.

        Raises ShapeError where a result has not the dtype, rank or sizes that were declared.
        """
        call = self._call
        for name, elements in self._read:
            self._learn(elements, _whole(array_of(values[name]), call.node), known, "an element")
        if call.operator == READ:
            return
        results = self._results([values[name] if name else None for name in call.inputs], known)
        for number, spec in enumerate(call.outputs):
            found = results[number] if number < len(results) else None
            if found is None or found.ndim != len(spec.shape) or dtype_name(found.dtype) != spec.dtype:
                text = "nothing" if found is None else f"{dtype_name(found.dtype)} of {found.ndim} axes"
                raise ShapeError(
                    f"node {call.node!r} gave {text} as output {number}, and said it would be "
                    f"{spec.dtype} of {len(spec.shape)} axes"
                )
            check_limit(
                found.nbytes, f"output {spec.name!r} of node {call.node!r}", "give the run data that make it smaller"
            )
            self._learn(self._extents[number], found.shape, known, "an extent")
            values[spec.name] = found

    def _results(self, given: Sequence[Any], known: Mapping[str, int]) -> Sequence[np.ndarray[Any, Any]]:
        """Returns the results of the operator, or those of the loop or of the branch that the condition selects."""
        if self._function is not None:
            return self._function([array_of(x) for x in given if x is not None])
        try:
            if self._loop is not None:
                return self._loop.run(given, known)
            condition, *captured = given
            found = self.bodies[0 if array_of(condition).reshape(-1)[0] else 1].run(captured, known)
            return [
                each.reshape((1,) * len(spec.shape)) if each.size == 1 and each.ndim < len(spec.shape) else each
                for each, spec in zip(map(array_of, found), self._call.outputs, strict=True)
            ]
        except ShapeError as error:
            raise ShapeError(f"node {self._call.node!r}: {error}") from error

    def _learn(self, forms: Sequence[_Form], found: Sequence[int], known: dict[str, int], subject: str) -> None:
        for (extent, name), number in zip(forms, found, strict=True):
            if name is not None and name not in known:
                if number == 0 and name in self._call.supposed:
                    raise ShapeError(
                        f"node {self._call.node!r}: {subject} of its result, {name!r}, is 0 in this run; the model "
                        "asks "
                        "what it is, and the program was compiled only for at least 1"
                    )
                known[name] = number
            elif _at(extent, known) != number:
                raise ShapeError(
                    f"node {self._call.node!r}: {subject} of its result is {number}; {_at(extent, known)} is legal"
                )


def _text(extents: Sequence[Extent]) -> list[_Form]:
    """Returns each of ``extents`` with the name of its dimension where it is just one dimension, else with None."""
    return [(extent, _dimension(extent)) for extent in extents]


def _dimension(extent: Extent) -> str | None:
    if isinstance(extent, Size) and len(extent.symbols) == 1:
        (symbol,) = extent.symbols.values()
        return symbol.name if extent == of_symbol(symbol) else None
    return None


class _Body:
    """A separate program that a step calls, such as the body of a loop."""

    def __init__(
        self, body: BodyProgram, piece: MakesPiece, carried: int | None = None, appended: Sequence[int] = ()
    ) -> None:
        self._body = body
        self._steps = SegmentSteps(body.segments, body.inputs, body.guards, piece)
        alone = None if carried is None else self._steps.alone
        self.iterations = None
        if carried is not None and alone is not None:
            self.iterations = BodyIterations.of(body, carried, appended, alone.function, alone.executor)

    def pieces(self) -> Iterator[ProgramPiece]:
        """Yields the pieces of the program."""
        return self._steps.pieces()

    def run(self, given: Sequence[Any], known: Mapping[str, int]) -> list[Any]:
        """Returns the results for the inputs ``given``, in order; ``known``: the dimensions of the surrounding
        program.
        """
        around = {name: known[name] for name in self._body.dimensions if name in known}
        values = self._steps.run(
            {spec.name: value for spec, value in zip(self._body.inputs, given, strict=True)}, frozenset(), around
        )
        return [values[spec.name] for spec in self._body.outputs]


def _whole(array: np.ndarray[Any, Any], node: str) -> list[int]:
    """Returns the elements of ``array``, which are sizes, as integers; raises ShapeError for one with a fraction."""
    values = array.reshape(-1).tolist()
    if any(number != int(number) for number in values):
        raise ShapeError(f"node {node!r}: {values} says sizes; whole numbers are legal")
    return [int(number) for number in values]


def _at(extent: Extent, known: Mapping[str, int]) -> int:
    return extent.at(known) if isinstance(extent, Size) else extent


def _without_elements(function: Function, known: Mapping[str, int]) -> dict[str, Any] | None:
    """Returns the outputs of ``function`` as empty arrays, by name, where each has an extent of 0; None where one has
    elements.
    """
    outputs = {}
    for spec in function.outputs:
        shape = tuple(_at(extent, known) for extent in spec.shape)
        if 0 not in shape:
            return None
        outputs[spec.name] = np.zeros(shape, stored_dtype(spec.dtype))
    return outputs
