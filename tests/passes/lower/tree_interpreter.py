"""Runs loop trees in Python, one element at a time: what the tests of loop transformations compare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from landbridge.interpreter.bodies import StageBody
from landbridge.interpreter.scalars import number_of, rule_of, scalar_dtype
from landbridge.passes.lower.access import ElementAccess, Linear
from landbridge.passes.lower.combiners import combiner, identity
from landbridge.passes.lower.loop_tree import LoopKind, LoopTree, Split, TailStrategy, TreeLoop, splits_around
from landbridge.passes.lower.nest import Register, Stage

Array = np.ndarray[Any, Any]
#: The values of loops, by name.
Values: TypeAlias = dict[str, int]
#: The indices of the nest's loops, by number.
Point: TypeAlias = dict[int, int]


@dataclass
class _Accumulator:
    """A result that is being reduced: whether it is stored, and its parts by the values of the loops that have
    accumulators of their own."""

    is_stored: bool
    parts: dict[tuple[int, ...], list[Any]] = field(default_factory=dict)


class TreeInterpreter:
    """Executes a tree on flat ``buffers``, which it changes.

    Parallel loops and the lanes of a sum run backwards, and vectors read all lanes before they write one. Copies hold
    only the elements that the loops inside reach; reading another one is a KeyError.
    """

    def __init__(self, tree: LoopTree, buffers: Mapping[SSAValue, Array]) -> None:
        self._tree, self._nest, self._buffers = tree, tree.nest, buffers
        self._bodies = [StageBody(s.body, list(s.body.last_op.operands)) for s in tree.nest.stages if s.body.last_op]
        #: By point, inside the outermost reduction loop; None elsewhere.
        self._sums: dict[tuple[int, ...], _Accumulator] | None = None
        #: The stores of a vector whose lanes are being computed; None elsewhere.
        self._late: list[tuple[SSAValue, int, Any]] | None = None
        self._copies: dict[ElementAccess, dict[int, Any]] = {}

    def run(self) -> None:
        self._loops(self._tree.loops, {}, ())

    def _loops(self, loops: Sequence[TreeLoop], values: Values, around: tuple[TreeLoop, ...]) -> None:
        if not loops:
            self._group((), values, around, reduces=True)
        for reduces, group in groupby(loops, self._tree.reduces):
            self._group(tuple(group), values, around, reduces=reduces)

    def _group(
        self, loops: tuple[TreeLoop, ...], values: Values, around: tuple[TreeLoop, ...], *, reduces: bool
    ) -> None:
        """Run neighbouring loops; those that reduce, or the iteration if there are no loops, share accumulators."""
        opens = reduces and self._nest.reduction is not None and self._sums is None
        if opens:
            self._sums = {}
            for below in _chains(loops):
                self._begin(below, values, around)
        if not loops:
            self._leaf(values, around)
        for loop in loops:
            self._loop(loop, values, around)
        if opens:
            sums, self._sums = self._sums or {}, None
            for point, accumulator in sums.items():
                if accumulator.is_stored:
                    self._after(dict(enumerate(point)), self._combined(accumulator.parts))

    def _loop(self, loop: TreeLoop, values: Values, around: tuple[TreeLoop, ...]) -> None:
        iterations: Any = range(loop.start, loop.start + loop.extent)
        is_vector = loop.kind is LoopKind.VECTORIZED and self._sums is None
        if is_vector:
            self._late = []
        lanes = loop.kind is LoopKind.VECTOR_REDUCTION and not self._nest.is_scan
        for i in reversed(iterations) if lanes or loop.kind is LoopKind.PARALLEL else iterations:
            inside = {**values, loop.name: i}
            outside = self._copies
            self._copies = outside | {read: self._copy(read, loop, inside, around) for read in loop.staged}
            self._loops(loop.inside, inside, (*around, loop))
            self._copies = outside
        if is_vector:
            late, self._late = self._late, None
            for buffer, at, value in late or ():
                self._buffers[buffer][at] = value

    def _copy(
        self, read: ElementAccess, loop: TreeLoop, values: Values, around: tuple[TreeLoop, ...]
    ) -> dict[int, Any]:
        """The elements that ``read`` reaches in the loops inside ``loop``, by index."""
        found: dict[int, Any] = {}
        for chain in _chains(loop.inside):
            for inner in _iterations(chain, values):
                point = self._point(inner, (*around, loop, *chain))
                if point is not None and _inside(read, point):
                    at = _value(read.index, point)
                    found[at] = self._buffers[read.buffer][at]
        return found

    def _begin(self, chain: Sequence[TreeLoop], values: Values, around: tuple[TreeLoop, ...]) -> None:
        """Give every point of the parallel loops of ``chain`` its initial values, also where nothing is added."""
        assert self._sums is not None
        parallel = [loop for loop in chain if not self._tree.reduces(loop)]
        zeros = {loop.name: int(loop.start) for loop in chain if self._tree.reduces(loop)}
        for inner in _iterations(parallel, {**values, **zeros}):
            if (point := self._point(inner, (*around, *chain), reductions=False)) is not None:
                self._sums.setdefault(self._key(point), _Accumulator(self._is_new(inner, (*around, *chain))))

    def _point(self, values: Values, chain: Sequence[TreeLoop], *, reductions: bool = True) -> Point | None:
        """The indices of the nest's loops; None where a guard leaves the iteration out."""
        found, dims = dict(values), {s.name: loop.dim for loop in chain for s in loop.splits}
        for split in reversed(splits_around(chain)):
            guards = reductions or not self._nest.dims[dims[split.name]].reduction
            found[split.name] = _joined(split, found)
            if split.tail.is_guarded and guards and found[split.name] >= split.start + split.extent:
                return None
        point = {d: found[f"d{d}"] for d in range(len(self._nest.dims)) if f"d{d}" in found}
        for b in self._nest.bounds:
            if not reductions and self._nest.dims[b.inner].reduction:
                continue
            if point[b.outer] * b.tile + point[b.inner] >= b.extent:
                return None
        return point

    def _key(self, point: Point) -> tuple[int, ...]:
        return tuple(0 if dim.reduction else point[d] for d, dim in enumerate(self._nest.dims))

    def _leaf(self, values: Values, around: tuple[TreeLoop, ...]) -> None:
        point = self._point(values, around)
        if point is None:
            return
        first = self._nest.stages[0]
        if first.scan is not None and first.scan.back:
            for d, dim in enumerate(self._nest.dims):
                if dim.reduction:
                    point[d] = dim.extent - 1 - point[d]
        if not first.reduces:
            if self._is_new(values, around):
                self._after(point, [])
            return
        assert self._sums is not None
        parts = self._sums[self._key(point)].parts
        owner = tuple(values[loop.name] for loop in around if loop.separate)
        if owner not in parts:
            parts[owner] = self._start(first, is_first=not parts)
        inputs = [self._read(r, point) if isinstance(r, ElementAccess) else None for r in first.reads]
        if first.scan is None:
            parts[owner] = self._run(0, [*inputs, *parts[owner]], point)
            return
        inputs[first.scan.state] = parts[owner][1]
        shown, state = self._run(0, inputs, point)
        parts[owner] = [None, state]
        self._write(first.writes[0], point, shown)

    def _is_new(self, values: Values, around: tuple[TreeLoop, ...]) -> bool:
        """Whether no earlier tile has stored this iteration."""
        found = dict(values)
        for split in reversed(splits_around(around)):
            found[split.name] = _joined(split, found)
            once = split.tail is TailStrategy.SHIFT_INWARDS_STORE_ONCE
            if once and found[split.name] < split.start + found[split.outer] * split.factor:
                return False
        return True

    def _start(self, main: Stage, *, is_first: bool) -> list[Any]:
        result = []
        for attr, w in zip(main.inits, main.writes, strict=True):
            if not is_first:
                attr = identity(str(combiner(main)), w.element)
            result.append(None if attr is None else number_of(attr, scalar_dtype(w.element)))
        return result

    def _combined(self, parts: Mapping[tuple[int, ...], list[Any]]) -> list[Any]:
        """The parts combined in the order of their owners; the initial values where there are none."""
        main = self._nest.stages[0]
        result, *others = [parts[owner] for owner in sorted(parts)] or [self._start(main, is_first=True)]
        for other in others:
            rule = rule_of(next(iter(main.body.args[len(main.reads)].uses)).operation)
            result = [rule(result[0], other[0])]
        return result

    def _after(self, point: Point, sums: list[Any]) -> None:
        """Runs the stages after the reduction, or all stages, and the stores."""
        registers: dict[tuple[int, int], Any] = {}
        for number, stage in enumerate(self._nest.stages):
            if stage.reduces:
                values = sums
            else:
                inputs = [
                    registers[r.stage, r.output] if isinstance(r, Register) else r and self._read(r, point)
                    for r in stage.reads
                ]
                values = self._run(number, inputs, point)
            for output, (w, stored) in enumerate(zip(stage.writes, stage.stored, strict=True)):
                registers[number, output] = values[output]
                if stored and not (stage.scan is not None and output == 0):
                    self._write(w, point, values[output])

    def _run(self, number: int, inputs: Sequence[Any], point: Point) -> list[Any]:
        stage = self._nest.stages[number]
        arguments = [*inputs, *[None] * (len(stage.body.args) - len(inputs))]
        counters = [np.asarray(_value(stage.dims[i], point)) for i in sorted(stage.dims)]
        return self._bodies[number].run(arguments, self._buffers, counters)

    def _read(self, a: ElementAccess, point: Point) -> Any:
        if not _inside(a, point):
            assert a.fill is not None
            return number_of(a.fill, scalar_dtype(a.element))
        at = _value(a.index, point)
        if a in self._copies:
            return self._copies[a][at]
        return self._buffers[a.buffer][at]

    def _write(self, a: ElementAccess, point: Point, value: Any) -> None:
        at = _value(a.index, point)
        if self._late is not None:
            self._late.append((a.buffer, at, value))
        else:
            self._buffers[a.buffer][at] = value


def _chains(loops: Sequence[TreeLoop]) -> list[tuple[TreeLoop, ...]]:
    return [chain for loop in loops for chain in loop.branches()] or [()]


def _iterations(chain: Sequence[TreeLoop], values: Values) -> Iterator[Values]:
    """All values of the loops of ``chain``, with those of the loops around."""
    if not chain:
        yield values
        return
    first, *rest = chain
    for i in range(first.start, first.start + first.extent):
        yield from _iterations(rest, {**values, first.name: i})


def _joined(split: Split, values: Values) -> int:
    """The index of the loop that was split."""
    before = values[split.outer] * split.factor
    if split.tail.shifts:
        before = max(min(before, split.extent - split.factor), 0)
    return int(split.start + before + values[split.inner])


def _value(x: Linear, point: Point) -> int:
    rest = sum(s * e.eval([point.get(d, 0) for d in range(max(point) + 1)], []) for s, e in x.rest)
    return x.const + sum(c * point[d] for d, c in x.coeffs.items()) + rest


def _inside(a: ElementAccess, point: Point) -> bool:
    return all(0 <= _value(g.index, point) < g.extent for g in a.guards)
