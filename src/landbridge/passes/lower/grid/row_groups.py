"""Schedule with a workgroup per row: its work-items share intermediate results of the row's stages, and reduce
together.

Rows are the iterations of loops that all nests of a PrimFunc share, or the points of one long reduction. Partial
results are combined in local memory as a tree (Harris, "Optimizing Parallel Reduction in CUDA", 2007).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, SSAValue

from landbridge.ir.types import element_count, item_bytes, shape_of
from landbridge.passes.lower.body import emit_body
from landbridge.passes.lower.code import Code, Index
from landbridge.passes.lower.combiners import combiner, fold, identity, sums_up
from landbridge.passes.lower.cost import SUM_ORDER
from landbridge.passes.lower.grid.cost import WORKGROUP_ROWS, WORKGROUPS
from landbridge.passes.lower.grid.launch import Launcher, WorkItem, barrier, local_memory, power_of_two
from landbridge.passes.lower.nest import Nest, Stage
from landbridge.passes.lower.nest_emitter import NestEmitter
from landbridge.passes.lower.prefix import shrink
from landbridge.passes.lower.schedule import Schedule
from landbridge.passes.lower.serial import ONE, serial
from landbridge.passes.lower.simplify import simplify
from landbridge.records import record
from landbridge.sizes.size import Extent, at_least, expected_size, never_below, product


@record(frozen=True)
class RowNest:
    """A nest inside a row. ``bound`` are its loops over rows: their indices select the row.

    ``most_alone``: the most iterations that a work-item may make alone; None without a limit.
    """

    nest: Nest
    bound: tuple[int, ...]
    most_alone: int | None = None

    @property
    def points(self) -> Extent:
        """Returns the number of points of one row."""
        return product(d.extent for i, d in enumerate(self.nest.dims) if i not in self.bound and not d.reduction)

    @property
    def length(self) -> Extent:
        """Returns the number of iterations of each point's reduction."""
        return product(d.extent for d in self.nest.dims if d.reduction)

    @property
    def is_too_long(self) -> bool:
        """Returns whether some size has a longer reduction than a work-item may do alone."""
        return self.most_alone is not None and never_below(self.length) > self.most_alone

    @property
    def shared(self) -> bool:
        """Returns whether all work-items of the workgroup reduce one point at a time together."""
        main = self.nest.reduction
        return (
            main is not None
            and len(main.writes) == 1
            and combiner(main) is not None
            and expected_size(self.points) <= WORKGROUP_ROWS.few_points
            and (expected_size(self.length) >= WORKGROUP_ROWS.shared_reduction or self.is_too_long)
        )

    @property
    def width(self) -> Extent:
        """Returns the number of work-items that have work: one for each term of a shared reduction, else one for each
        point.
        """
        return self.length if self.shared else self.points


def prefix_rows(
    nests: Sequence[Nest], length: int, shrunk: set[SSAValue], most_alone: int | None = None
) -> list[RowNest]:
    """Returns the nests, which share their first ``length`` loops, as rows; ``shrunk`` temporaries hold one row."""
    bound = tuple(range(length))
    return [RowNest(simplify(shrink(n, shrunk, length), keep=length), bound, most_alone) for n in nests]


def row_launch(
    launcher: Launcher,
    rows: Sequence[RowNest],
    local: Mapping[SSAValue, int],
    buffers: Mapping[SSAValue, SSAValue],
) -> None:
    """Emit the launch of one workgroup for each row, in which the nests ``rows`` run one after the other.

    ``local`` maps temporaries to the number of elements that a row needs; they are allocated in local memory.
    ``buffers`` has the memrefs of all other buffers.
    """
    first = rows[0]
    extents = [first.nest.dims[d].extent for d in first.bound]
    widest = max(
        max(WORKGROUP_ROWS.sharers, expected_size(row.width)) if row.is_too_long else expected_size(row.width)
        for row in rows
    )
    size = power_of_two(min(widest, WORKGROUPS.largest_size), launcher.limits.workgroup_size)

    def body(code: Code, item: WorkItem) -> None:
        memory = dict(buffers)
        for temporary, count in local.items():
            ty = temporary.type
            assert isinstance(ty, MemRefType)
            memory[temporary] = local_memory(code, ty.element_type, count)
        at = code.unflatten(item.group, extents)
        trees: dict[Attribute, SSAValue] = {}
        for number, row in enumerate(rows):
            if number:
                barrier(code)
            env = dict(zip(row.bound, at, strict=True))
            Row(code, row, size, item.thread, memory, env, trees).emit()

    launcher.launch(product(extents), size, body)


def local_temporaries(temporaries: Sequence[SSAValue], rows: Extent, available: int) -> dict[SSAValue, int]:
    """Returns the temporaries that fit in local memory, smallest first, with the number of elements of one row, which
    is the same for all sizes.

    ``rows`` is the number of rows of each temporary, ``available`` the local memory of a workgroup in bytes.
    """
    found: dict[SSAValue, int] = {}
    left = available - WORKGROUPS.largest_size * 8  # for partial results
    for t in sorted(temporaries, key=lambda t: expected_size(element_count(shape_of(t.type))) * item_bytes(t.type)):
        count = _quotient(element_count(shape_of(t.type)), rows)
        if count is None:
            continue
        left -= count * item_bytes(t.type) + 64
        if left >= 0:
            found[t] = count
    return found


def _quotient(elements: Extent, rows: Extent) -> int | None:
    """Returns ``elements / rows`` if that is one number for all sizes, of at least one row; else None."""
    if isinstance(elements, int) and isinstance(rows, int):
        return elements // rows
    if isinstance(rows, int):
        return None
    some = expected_size(elements) // max(expected_size(rows), 1)
    return some if rows * some == elements else None


class Row:
    """Emits one nest for one row of a workgroup. ``trees`` maps an element type to local memory for partial results,
    which is allocated when it is first needed.
    """

    def __init__(
        self,
        code: Code,
        row: RowNest,
        size: int,
        thread: SSAValue,
        buffers: Mapping[SSAValue, SSAValue],
        env: dict[int, Index],
        trees: dict[Attribute, SSAValue],
    ) -> None:
        self._trees = trees
        self._code, self._row, self._size, self._thread = code, row, size, thread
        self._sched: Schedule = serial(row.nest, row.bound)
        self._emitter = NestEmitter(code, row.nest, self._sched, buffers, env)
        self._extents = [row.nest.dims[d].extent for d in self._sched.outer]

    def emit(self) -> None:
        code, points = self._code, self._row.points

        def iteration(p: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            self._point(p)
            return []

        if self._row.shared and points == 1:
            self._point(0)
        elif self._row.shared:
            code.loop(0, points, 1, [], iteration)
        elif at_least(self._size, points):
            code.when(code.inside(self._thread, points), lambda: self._point(self._thread))
        else:
            self._share(0, points, [], iteration)

    def _share(
        self,
        first: Index,
        end: Index,
        carried: Sequence[SSAValue],
        body: Callable[[SSAValue, list[SSAValue]], Sequence[SSAValue]],
    ) -> list[SSAValue]:
        """Emit a loop over this work-item's share of the numbers from ``first`` to ``end`` (exclusive): every n-th, n
        being the size of the workgroup.

        If ``end`` is known only at run time, all work-items make as many iterations, of which some do nothing: PoCL 3.1
        takes the condition of a loop between two barriers from one work-item for all of them.
        """
        code = self._code
        if isinstance(end, int):
            return code.loop(code.add(self._thread, first), end, self._size, carried, body)

        def iteration(start: SSAValue, before: list[SSAValue]) -> Sequence[SSAValue]:
            number = code.value(code.add(self._thread, start))
            return code.branch(code.inside(number, end), lambda: body(number, before), lambda: before)

        return code.loop(first, end, self._size, carried, iteration)

    def _point(self, p: Index) -> None:
        self._set(p)
        if self._row.shared:
            self._shared()
        else:
            self._emitter.tile(ONE)

    def _set(self, p: Index) -> None:
        self._emitter.env.update(zip(self._sched.outer, self._code.unflatten(p, self._extents), strict=True))

    def _shared(self) -> None:
        """Emit the reduction of the current point by all work-items of the workgroup, and the stages after it by one of
        them.
        """
        main = self._row.nest.reduction
        assert main is not None
        self.together(main, self.partial(main), partial(self.finish, main))
        if self._row.points != 1:
            barrier(self._code)

    def together(self, main: Stage, value: SSAValue, then: Callable[[SSAValue], None]) -> None:
        """Emit a tree reduction of ``value``, one from each work-item; work-item 0 calls ``then`` with the result.

        The partial results are in local memory, with a barrier before each step.
        """
        code, element = self._code, main.writes[0].element
        if element not in self._trees:
            self._trees[element] = local_memory(code, element, self._size)
        shared = self._trees[element]
        code.store(value, shared, self._thread)
        step = self._size // 2
        while step:
            barrier(code)
            code.when(code.inside(self._thread, step), lambda: self._fold(main, shared, step))  # noqa: B023
            step //= 2
        code.when(code.inside(self._thread, 1), lambda: then(code.load(shared, 0, element)))

    def finish(self, main: Stage, value: SSAValue) -> None:
        """Emit the stages after the reduction for the current point. ``value`` is the result of the reduction without
        its initial value, which is combined with it here.
        """
        assert main.inits[0] is not None
        start = self._code.constant(main.inits[0], main.writes[0].element)
        value = fold(self._code, main, start, value)
        self._emitter.operands.forget()
        self._emitter.point(ONE, 0, 0, {(0, 0, 0, 0): value})

    def partial(self, main: Stage, first: Index = 0, last: Index | None = None, most: Extent | None = None) -> SSAValue:
        """Emit this work-item's share of the reduction and return its partial result, without the reduction's initial
        value.

        Its share is every n-th iteration from ``first`` to ``last`` (exclusive; by default all), n being the size of
        the workgroup. ``most`` is an upper bound of the number of iterations, which decides whether long sums are added
        up in blocks.
        """
        code, row, operands = self._code, self._row, self._emitter.operands
        extents = [row.nest.dims[d].extent for d in self._sched.inner]
        combine = combiner(main)
        assert combine is not None
        start = code.constant(identity(combine, main.writes[0].element), main.writes[0].element)

        def iteration(k: SSAValue, carried: list[SSAValue]) -> Sequence[SSAValue]:
            self._emitter.env.update(zip(self._sched.inner, code.unflatten(k, extents), strict=True))
            operands.forget()
            reads = [None if r is None else operands.read(r, ONE, 0, 0) for r in main.reads]  # type: ignore[arg-type]

            def index(d: int) -> Index:
                return operands.index(main.dims[d], ONE, 0, 0)

            values = emit_body(code, main, [*reads, *carried], 1, index, operands.buffers)
            operands.forget()
            return values

        end = row.length if last is None else last
        length = never_below(row.length if most is None else most)
        if not sums_up(main) or length <= 2 * SUM_ORDER.chain_terms * self._size:
            (value,) = self._share(first, end, [start], iteration)
            return value

        def block(k: SSAValue, carried: list[SSAValue]) -> Sequence[SSAValue]:
            stop = code.minimum(code.add(k, SUM_ORDER.chain_terms * self._size), end)
            if isinstance(end, int):
                return [fold(code, main, carried[0], code.loop(k, stop, self._size, [start], iteration)[0])]
            return [fold(code, main, carried[0], self._share(k, stop, [start], iteration)[0])]

        begin = code.add(self._thread, first) if isinstance(end, int) else first
        (value,) = code.loop(begin, end, SUM_ORDER.chain_terms * self._size, [start], block)
        return value

    def _fold(self, main: Stage, shared: SSAValue, step: int) -> None:
        code, element = self._code, main.writes[0].element
        mine = code.load(shared, self._thread, element)
        other = code.load(shared, code.add(self._thread, step), element)
        code.store(fold(code, main, mine, other), shared, self._thread)
