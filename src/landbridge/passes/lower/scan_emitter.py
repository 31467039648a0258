"""Emits running folds; the state of each element stays in registers between iterations.

Lanes lie along the elements. If iterations are contiguous in memory, they lie along the iterations instead: the
prefixes of a vector of n lanes take log2(n) steps (Hillis and Steele, "Data parallel algorithms", 1986), and the chain
of dependent additions is n times shorter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from xdsl.dialects import vector
from xdsl.dialects.builtin import DenseArrayBase, VectorType, i64
from xdsl.ir import SSAValue

from landbridge.errors import CodegenError
from landbridge.passes.lower.access import ElementAccess
from landbridge.passes.lower.body import value_of
from landbridge.passes.lower.code import Code, Index
from landbridge.passes.lower.combiners import identity
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.operands import Operands, Tile
from landbridge.passes.lower.scan import fold_of
from landbridge.passes.lower.schedule import Schedule
from landbridge.sizes.size import Extent

#: The state of each element of a tile, by row and column.
States: TypeAlias = dict[tuple[int, int], SSAValue]


class ScanEmitter:
    """Emits the running fold of a nest for one tile."""

    def __init__(self, code: Code, nest: Nest, sched: Schedule, operands: Operands, tile: Tile) -> None:
        self._code, self._nest, self._sched, self._operands, self._tile = code, nest, sched, operands, tile
        self._stage = nest.stages[0]
        scan, start = self._stage.scan, self._stage.inits[1]
        if scan is None or start is None:
            raise CodegenError("a nest that is not a running fold has no states")
        self._scan, self._start = scan, start
        self._iteration = next(iter(sched.inner), None)

    def emit(self) -> None:
        """Emit all iterations of every element of the tile, then the stores of their final states."""
        sched = self._sched
        states = self._along_iterations() if sched.horizontal else self._iterations(0, self._extent(), self._first())
        self._operands.forget()
        for (m, n), state in states.items():
            self._operands.write(self._stage.writes[1], state, self._tile, m, n)

    def _extent(self) -> Extent:
        return 1 if self._iteration is None else self._nest.dims[self._iteration].extent

    def _first(self) -> States:
        element, code = self._stage.writes[1].element, self._code
        t, vectors = self._tile, self._sched.lane is not None and not self._sched.horizontal
        start = code.splat(self._start, element, self._sched.lanes) if vectors else code.constant(self._start, element)
        return {(m, n): start for m in range(t.m_size) for n in range(t.n_size)}

    def _places(
        self,
        low: Extent,
        high: Extent,
        step: int,
        states: list[SSAValue],
        iteration: Callable[[list[SSAValue]], list[SSAValue]],
    ) -> list[SSAValue]:
        """Emit ``iteration`` for indices from ``low`` to ``high`` in steps of ``step``, which divides the range, in the
        fold's order.
        """
        code, d = self._code, self._iteration
        if d is None:
            return iteration(states)

        def at(i: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            back: Index = code.add(code.mul(i, -step), high - step)
            self._operands.env[d] = back if self._scan.back else code.add(code.mul(i, step), low)
            return iteration(carried)

        result = code.loop(0, (high - low) // step, 1, states, at)
        self._operands.env.pop(d, None)
        return result

    def _iterations(self, low: Extent, high: Extent, states: States) -> States:
        """Emit iterations ``low .. high``, each for all elements of the tile."""
        operands, stage, t = self._operands, self._stage, self._tile

        def iteration(carried: list[SSAValue]) -> list[SSAValue]:
            operands.forget()
            following = []
            for (m, n), state in zip(states, carried, strict=True):
                reads = [operands.read(r, t, m, n) if isinstance(r, ElementAccess) else None for r in stage.reads]
                reads[self._scan.state] = state
                shown, after = operands.body(stage, reads, t, m, n)
                operands.write(stage.writes[0], shown, t, m, n)
                following.append(after)
            return following

        return dict(zip(states, self._places(low, high, 1, list(states.values()), iteration), strict=True))

    def _along_iterations(self) -> States:
        """Emit the iterations as vectors, and one by one those that fill no vector, which are the last in memory."""
        extent, lanes, states = self._extent(), self._sched.lanes, self._first()
        whole = extent // lanes * lanes
        one_by_one = replace(self._sched, lane=None, lanes=1, horizontal=False)
        operands = Operands(self._code, one_by_one, self._operands.buffers, self._operands.env, self._operands.known)
        rest = ScanEmitter(self._code, self._nest, one_by_one, operands, self._tile)
        if self._scan.back:
            return self._vectors(whole, rest._iterations(whole, extent, states))
        return rest._iterations(whole, extent, self._vectors(whole, states))

    def _vectors(self, whole: Extent, states: States) -> States:
        """Emit iterations ``0 .. whole``, one vector at a time."""
        code, lanes, element = self._code, self._sched.lanes, self._stage.writes[1].element
        carried = [code.broadcast(state, lanes) for state in states.values()]
        result = self._places(0, whole, lanes, carried, lambda now: [self._vector(each) for each in now])
        return {
            key: code.add_op(vector.ExtractOp(value, [0], element)) for key, value in zip(states, result, strict=True)
        }

    def _vector(self, state: SSAValue) -> SSAValue:
        """Emit one vector of iterations. ``state`` has the state before them in every lane; returns the state after
        them, likewise.
        """
        code, stage, t, lanes = self._code, self._stage, self._tile, self._sched.lanes
        fold, element = fold_of(stage), stage.writes[1].element
        assert fold is not None and stage.body.last_op is not None
        operands = self._operands
        operands.forget()
        neutral = code.splat(identity(fold.name, element), element, lanes)
        given: dict[SSAValue, SSAValue] = {}
        for argument, read in zip(stage.body.args, stage.reads, strict=False):
            if isinstance(read, ElementAccess):
                given[argument] = operands.read(read, t, 0, 0)
        before, following = stage.body.args[self._scan.state], fold.results[0]

        def combined(a: SSAValue, b: SSAValue) -> SSAValue:
            return code.add_op(
                type(fold).create(operands=[a, b], result_types=[a.type], properties=dict(fold.properties))
            )

        terms = value_of(code, following, {**given, before: neutral}, lanes)
        if not isinstance(terms.type, VectorType):
            terms = code.broadcast(terms, lanes)
        distance = 1
        while distance < lanes:
            terms = combined(self._moved(terms, neutral, distance), terms)
            distance *= 2
        last = 0 if self._scan.back else lanes - 1
        earlier = combined(state, self._moved(terms, neutral, 1))
        states = {before: earlier, following: combined(state, terms)}
        shown = value_of(code, stage.body.last_op.operands[0], {**given, **states}, lanes)
        result = stage.writes[0]
        code.store_vector(shown, operands.buffers[result.buffer], operands.where(result, t, 0, 0), lanes, 0)
        return combined(state, self._shuffled(terms, terms, [last] * lanes))

    def _moved(self, value: SSAValue, neutral: SSAValue, distance: int) -> SSAValue:
        """Returns ``value`` shifted by ``distance`` lanes in the fold's order; the first lanes are ``neutral``."""
        lanes = range(self._sched.lanes)
        sources = [i + distance if self._scan.back else i - distance for i in lanes]
        return self._shuffled(value, neutral, [s if s in lanes else len(lanes) + i for i, s in enumerate(sources)])

    def _shuffled(self, a: SSAValue, b: SSAValue, mask: Sequence[int]) -> SSAValue:
        assert isinstance(a.type, VectorType)
        return self._code.add_op(vector.ShuffleOp(a, b, DenseArrayBase.from_list(i64, list(mask)), result_type=a.type))
