"""Turns of the innermost loop of a register tile's reduction: what each reads, and which sum its terms go to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import TypeAlias

from xdsl.dialects.builtin import VectorType
from xdsl.ir import SSAValue

from landbridge.errors import CodegenError
from landbridge.passes.lower.access import ElementAccess, Guard
from landbridge.passes.lower.ahead import asked_ahead, rows_asked_ahead
from landbridge.passes.lower.between_lanes import turns_between
from landbridge.passes.lower.code import Code
from landbridge.passes.lower.combiners import fold
from landbridge.passes.lower.nest import Nest
from landbridge.passes.lower.operands import Operands, RowPadding, Tile
from landbridge.passes.lower.padding import Padding
from landbridge.passes.lower.row_windows import RowWindow, fold_row, row_window
from landbridge.passes.lower.schedule import Schedule
from landbridge.passes.lower.turns_together import is_shared, window_of

#: Row, column and partial-sum copy of an accumulator, and the output it belongs to.
Slot: TypeAlias = tuple[int, int, int, int]
Slots: TypeAlias = dict[Slot, SSAValue]


class ReductionTurns:
    """Emits turns of the innermost loop for one tile, whose other loops are in the ``env`` of ``operands``.
    ``asks_ahead``: what the nest's schedule asks for ahead is asked for with each.

    ``window``: the loop of which rows of the tile read the same, and what is written out within: its turns are emitted
    together, and none of these loops is a loop.
    """

    def __init__(
        self,
        code: Code,
        nest: Nest,
        sched: Schedule,
        padding: Padding,
        operands: Operands,
        tile: Tile,
        asks_ahead: bool,
    ) -> None:
        main = nest.reduction
        if main is None:
            raise CodegenError("a nest without a reduction has nothing to reduce")
        self.code, self.nest, self.sched, self.operands, self.main = code, nest, sched, operands, main
        self.padding, self._tile = padding, tile
        self._ahead = asked_ahead(nest, sched) if sched.asks_ahead and asks_ahead else []
        self._next_rows = rows_asked_ahead(nest, sched) if asks_ahead else []
        plain = sched.copies == 1 and sched.turns == 1
        self._between = 1
        self._takes_lanes = sched.turns > 1 and sched.vectors is None
        self.window = row_window(nest, sched.lane, sched.rows, sched.inner) if plain else None

    def lane_step(self, d: int) -> int:
        """The iterations of loop ``d`` that one turn takes, a lane each."""
        return self.operands.lanes if self.sched.horizontal and d == self.sched.lane else 1

    def emit(
        self,
        slots: Slots,
        turns: int,
        settled: Sequence[Guard],
        inside: Callable[[int, int], bool] = lambda turn, row: True,
    ) -> Slots:
        """``turns`` turns, whose terms go to the partial sums one after the other; of each those rows that are
        ``inside``. ``settled``: guards that need no test."""
        if self.window is not None:
            return self._window_turns(self.window, slots, settled)
        main = self.main
        self.operands.forget()
        result = dict(slots)
        numbers = None
        if self.sched.numbers is not None and turns > 1:
            taken = {(m, turn) for turn, (m, *_) in product(range(turns), slots) if inside(turn, m)}
            numbers = self.sched.numbers.places(taken) if taken else None
        last = self.sched.lane if self.sched.horizontal else self.sched.inner[-1] if self.sched.inner else None
        between = 1 if last is None else turns_between(main, self.sched.lane, last)
        self._between = between if turns % between == 0 else 1
        asked = 0
        for turn, (m, n, u, o) in self._in_order(slots, turns, last):
            if turn == asked:
                self._ask_ahead(turn)
                asked += 1
            if o or u != turn % self.sched.copies or not inside(turn, m):
                continue
            shift = (last, turn * self.lane_step(last)) if last is not None and turns > 1 else None
            reads = [
                self._read(r, m, n, shift, numbers, settled) if isinstance(r, ElementAccess) else None
                for r in main.reads
            ]
            accumulators = [result[m, n, u, x] for x in range(len(main.writes))]
            inputs = [*reads, *accumulators]
            values = self.operands.body(main, inputs, self._tile, m, n)
            for x, v in enumerate(values):
                if self.sched.lane is not None and not isinstance(v.type, VectorType):
                    v = self.code.broadcast(v, self.operands.lanes)
                result[m, n, u, x] = v
        self.operands.forget()
        return result

    def _ask_ahead(self, turn: int) -> None:
        """Ask for what is to be read some turns after ``turn`` of those written out."""
        for (a, early), n in product(self._ahead, range(self._tile.columns)):
            at = self.operands.where(a, self._tile, 0, n, (self.sched.inner[-1], early + turn))
            self.code.prefetch(self.operands.buffers[a.buffer], at)
        for a, m in product(self._next_rows if turn == 0 else (), range(self._tile.rows)):
            at = self.operands.where(a, self._tile, self._tile.rows + m, 0)
            self.code.prefetch(self.operands.buffers[a.buffer], at)

    def _in_order(self, slots: Slots, turns: int, last: int | None) -> list[tuple[int, Slot]]:
        """Turns and slots, turn by turn; of a window as it goes through memory, so that a vector that several rows read
        need not stay in a register until their turns come, unless the columns' vectors would take more of them."""
        pairs = list(product(range(turns), slots))
        if self._between > 1:  # turns of the same vectors one after the other, as these are too many to be kept
            places = {slot: place for place, slot in enumerate(slots)}
            pairs.sort(key=lambda pair: (pair[0] // self._between, places[pair[1]]))
        numbers = self.sched.numbers
        if numbers is not None and not numbers.by_place(self._tile.rows, self._tile.columns):
            return pairs
        if (overlap := self.overlap(turns, last)) is not None:
            step, stride = overlap
            pairs.sort(key=lambda pair: pair[0] * step + pair[1][0] * stride)
        return pairs

    def overlap(self, turns: int, last: int | None) -> tuple[int, int] | None:
        """By how much a turn and a row go on in memory, where the ``turns`` written out are those of a whole window."""
        if last is None or self.sched.lane is None or self.sched.copies > 1 or turns != self.nest.dims[last].extent:
            return None
        shared = self.sched.vectors or self.sched.numbers
        if shared is not None:
            return 1, shared.stride
        return window_of(self.main, self.sched.lane, self.sched.rows, last, turns)

    def _window_turns(self, window: RowWindow, slots: Slots, settled: Sequence[Guard]) -> Slots:
        """The turns of a window that the rows of the tile share: each row that they read, once."""
        t, operands, result = self._tile, self.operands, dict(slots)
        by_turn = t.padding is RowPadding.BY_TURN and self.padding.at_edges(window.dim)
        settled = [*settled, *(self.padding.settled_by_turn(window.dim) if by_turn else [])]

        def inside(m: int, turn: int) -> bool:
            assert not isinstance(t.row, SSAValue)
            return self.padding.row_inside(t.row + m, window.dim, turn)

        for n, users in product(range(t.columns), window.places(t.rows)):
            taken = [(m, i) for m, i in users if (m, n, 0, 0) in slots and (not by_turn or inside(m, i))]
            if not taken:
                continue
            first, turn = taken[0]

            def read(at: dict[int, int]) -> SSAValue:
                operands.forget()  # what was loaded at other turns
                self.operands.env.update({**at, window.dim: turn})  # noqa: B023
                return operands.read(window.read, t, first, n, None, settled)  # noqa: B023

            row = fold_row(self.code, self.nest, window, self.operands.lanes, read)
            for m, _ in taken:
                result[m, n, 0, 0] = fold(self.code, self.main, result[m, n, 0, 0], row)
        for d in (window.dim, *window.written_out):
            self.operands.env.pop(d, None)
        operands.forget()
        return result

    def _read(
        self,
        a: ElementAccess,
        m: int,
        n: int,
        shift: tuple[int, int] | None,
        numbers: range | None,
        settled: Sequence[Guard],
    ) -> SSAValue:
        if shift is not None and self._takes_lanes and is_shared(a, self.sched.lane, shift[0]):
            if numbers is not None:
                return self.operands.read_number(a, self._tile, m, n, shift, numbers, settled)
            return self.operands.read_lane(a, self._tile, m, n, shift, self.sched.turns, settled)
        return self.operands.read(a, self._tile, m, n, shift, settled, between=self._between)
