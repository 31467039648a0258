"""Prints vectors as their lanes, each a variable of its own.

Schedules make tiles of vectors. A processor without vectors keeps the lanes of a tile in single registers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects import memref, vector
from xdsl.dialects.builtin import DenseArrayBase, MemRefType
from xdsl.ir import Operation, SSAValue

from landbridge.codegen.c.emitter import CEmitter, Printer
from landbridge.codegen.c.memory import address
from landbridge.codegen.c.scalar import convert_float, expression
from landbridge.codegen.c.types import CType
from landbridge.codegen.c.unit import CUnit
from landbridge.codegen.c.vector import accumulated, combination, combining_of
from landbridge.codegen.printing import constant_values, lane_position
from landbridge.errors import CodegenError


class LaneEmitter(CEmitter):
    """Prints one function body in which every vector is its lanes."""

    def __init__(self, unit: CUnit, printers: Mapping[type[Operation], Printer]) -> None:
        super().__init__(unit, printers)
        #: The C texts of the lanes of each vector.
        self.lanes: dict[SSAValue, list[str]] = {}

    def kind(self, value: SSAValue) -> CType:
        """Returns the CType of ``value``, without defining a vector type."""
        return self.unit.kind(value.type)

    def parts(self, value: SSAValue) -> list[tuple[str, CType]]:
        """Returns the lanes of a vector; of anything else its one text."""
        kind = self.kind(value)
        return [(text, CType(kind.element)) for text in self.lanes[value]] if kind.lanes else super().parts(value)

    def texts(self, value: SSAValue, count: int) -> list[str]:
        """Returns ``count`` texts: the lanes of a vector, or a scalar for each of them."""
        return self.lanes[value] if self.kind(value).lanes else [self.names[value]] * count

    def set_lanes(self, value: SSAValue, texts: Sequence[str]) -> None:
        """Emits the definition of a new constant for each lane of ``value``."""
        scalar, names = self.kind(value).scalar, []
        for text in texts:
            names.append(self.fresh())
            self.line(f"const {scalar} {names[-1]} = {text};")
        self.lanes[value] = names

    def rename(self, values: Sequence[SSAValue], names: Sequence[str]) -> None:
        """Names ``values`` after variables, one for each lane of a vector."""
        left = iter(names)
        for value in values:
            lanes = self.kind(value).lanes
            if lanes:
                self.lanes[value] = [next(left) for _ in range(lanes)]
            else:
                self.names[value] = next(left)

    def variables(self, values: Sequence[SSAValue], initial: Sequence[SSAValue] = ()) -> list[str]:
        """Emits the declarations of variables, one for each lane of a vector; returns their names."""
        starts = [text for start in initial for text, _ in self.parts(start)]
        scalars = [self.kind(value).scalar for value in values for _ in range(self.kind(value).lanes or 1)]
        names = [self.fresh() for _ in scalars]
        for scalar, name, start in zip(scalars, names, starts or [""] * len(names), strict=True):
            self.line(f"{scalar} {name}{f' = {start}' if start else ''};")
        self.rename(values, names)
        return names


def by_lane(printer: Printer) -> Printer:
    """Returns a printer of an operation whose result is computed lane by lane; of scalars it is ``printer``."""

    def emit(e: CEmitter, op: Operation) -> None:
        assert isinstance(e, LaneEmitter)
        result = e.kind(op.results[0])
        if not result.lanes:
            printer(e, op)
            return
        kinds, one = [CType(e.kind(o).element) for o in op.operands], CType(result.element)
        operands = [e.texts(o, result.lanes) for o in op.operands]
        e.set_lanes(op.results[0], [expression(op, kinds, one, texts) for texts in zip(*operands, strict=True)])

    return emit


def constant(printer: Printer) -> Printer:
    """Returns a printer of constants; of scalars it is ``printer``."""

    def emit(e: CEmitter, op: Operation) -> None:
        assert isinstance(e, LaneEmitter)
        kind = e.kind(op.results[0])
        if not kind.lanes:
            printer(e, op)
            return
        texts = [e.unit.literal(v, kind.element) for v in constant_values(op, e.form)]
        e.lanes[op.results[0]] = texts * (kind.lanes // len(texts))

    return emit


def _load(e: LaneEmitter, op: Operation) -> None:
    ref, *indices = op.operands
    kind, pointer, true = e.kind(op.results[0]), address(e, ref, indices), ""
    if kind.element == "i1":  # a byte that is not 0 is true
        true = " != 0"
    if not kind.lanes:
        e.set(op.results[0], f"*{pointer}{true}")
        return
    first = _pointer(e, ref, pointer, "const ")
    e.set_lanes(op.results[0], [f"{first}[{i}]{true}" for i in range(kind.lanes)])


def _store(e: LaneEmitter, op: Operation) -> None:
    value, ref, *indices = op.operands
    pointer = address(e, ref, indices)
    if not e.kind(value).lanes:
        e.line(f"*{pointer} = {e.names[value]};")
        return
    first = _pointer(e, ref, pointer)
    for number, text in enumerate(e.lanes[value]):
        e.line(f"{first}[{number}] = {text};")


def _pointer(e: LaneEmitter, ref: SSAValue, text: str, qualifier: str = "") -> str:
    """Emits a pointer to the first of several lanes; returns its name."""
    name = e.fresh()
    assert isinstance(ref.type, MemRefType)
    e.line(f"{qualifier}{e.unit.in_memory(e.unit.kind(ref.type.element_type))} *const {name} = {text};")
    return name


def _masked_load(e: LaneEmitter, op: Operation) -> None:
    ref, *indices, mask, other = op.operands
    kind = e.kind(op.results[0])
    first = _pointer(e, ref, address(e, ref, indices), "const ")
    true = " != 0" if kind.element == "i1" else ""
    pairs = enumerate(zip(e.lanes[mask], e.lanes[other], strict=True))
    e.set_lanes(op.results[0], [f"({m} ? {first}[{i}]{true} : {x})" for i, (m, x) in pairs])


def _masked_store(e: LaneEmitter, op: Operation) -> None:
    ref, *indices, mask, value = op.operands
    first = _pointer(e, ref, address(e, ref, indices))
    for number, (m, text) in enumerate(zip(e.lanes[mask], e.lanes[value], strict=True)):
        e.line(f"if ({m}) {first}[{number}] = {text};")


def _broadcast(e: LaneEmitter, op: Operation) -> None:
    e.lanes[op.results[0]] = e.texts(op.operands[0], e.kind(op.results[0]).lanes)


def _fma(e: LaneEmitter, op: Operation) -> None:
    kind = e.kind(op.results[0])
    one, wide = CType(kind.element), accumulated(kind)
    texts = []
    for lanes in zip(*(e.lanes[o] for o in op.operands), strict=True):
        a, b, c = (convert_float(one, wide, text) for text in lanes)
        texts.append(convert_float(wide, one, f"fmaf({a}, {b}, {c})"))
    e.set_lanes(op.results[0], texts)


def _reduction(e: LaneEmitter, op: Operation) -> None:
    source, *accumulator = op.operands
    kind = e.kind(source)
    combining, in_order = combining_of(op, kind)
    combine, one, wide = combination(kind, combining), CType(kind.element), accumulated(kind)
    left = [convert_float(one, wide, text) for text in e.lanes[source]]
    start = [convert_float(one, wide, e.names[value]) for value in accumulator]
    left = [*start, *left] if in_order else [*left, *start]
    while len(left) > 1:
        if in_order or len(left) % 2:
            left = [_combined(e, wide, combine(left[0], left[1])), *left[2:]]
        else:
            half = len(left) // 2
            left = [_combined(e, wide, combine(left[i], left[i + half])) for i in range(half)]
    e.set(op.results[0], f"({left[0]} & 1)" if kind.element == "i1" else convert_float(wide, one, left[0]))


def _combined(e: LaneEmitter, kind: CType, text: str) -> str:
    name = e.fresh()
    e.line(f"const {kind.text} {name} = {text};")
    return name


def _extract(e: LaneEmitter, op: Operation) -> None:
    source, position = op.operands[0], lane_position(op, 1)
    if isinstance(position, int):
        e.names[op.results[0]] = e.lanes[source][position]
    else:
        e.set(op.results[0], f"{_array(e, source)}[{e.names[position]}]")


def _insert(e: LaneEmitter, op: Operation) -> None:
    value, target = op.operands[0], op.operands[1]
    position = lane_position(op, 2)
    texts = list(e.lanes[target])
    if isinstance(position, int):
        texts[position] = e.names[value]
        e.lanes[op.results[0]] = texts
        return
    index, inserted = e.names[position], e.names[value]
    e.set_lanes(op.results[0], [f"({index} == {i} ? {inserted} : {text})" for i, text in enumerate(texts)])


def _array(e: LaneEmitter, value: SSAValue) -> str:
    """Emits an array of the lanes of ``value``; returns its name."""
    name = e.fresh()
    e.line(f"const {e.kind(value).scalar} {name}[] = {{{', '.join(e.lanes[value])}}};")
    return name


def _shuffle(e: LaneEmitter, op: Operation) -> None:
    mask = op.properties["mask"]
    assert isinstance(mask, DenseArrayBase)
    both = [*e.lanes[op.operands[0]], *e.lanes[op.operands[1]]]
    # A negative number is a lane that nobody reads.
    e.lanes[op.results[0]] = [both[max(int(number), 0)] for number in mask.get_values()]


def _create_mask(e: LaneEmitter, op: Operation) -> None:
    count = e.names[op.operands[0]]
    e.set_lanes(op.results[0], [f"{i} < {count}" for i in range(e.kind(op.results[0]).lanes)])


def _bitcast(e: LaneEmitter, op: Operation) -> None:
    source, result = op.operands[0], op.results[0]
    before, after = e.kind(source), e.kind(result)
    if before.bits * before.lanes != after.bits * after.lanes:
        raise CodegenError(f"vector.bitcast of {source.type} to {result.type}: sizes differ")
    if before.scalar == after.scalar:
        e.lanes[result] = e.lanes[source]
    elif before.bits == after.bits:
        bits = f"lb_bits_{before.element}_{after.element}"
        e.set_lanes(result, [f"{bits}({text})" for text in e.lanes[source]])
    else:
        whole, name = _array(e, source), e.fresh()
        e.line(f"{after.scalar} {name}[{after.lanes}];")
        e.line(f"memcpy({name}, {whole}, sizeof {name});")
        e.set_lanes(result, [f"{name}[{i}]" for i in range(after.lanes)])


def _of_lanes(printer: Callable[[LaneEmitter, Operation], None]) -> Printer:
    """Returns ``printer`` for emitters of which all are LaneEmitters."""

    def emit(e: CEmitter, op: Operation) -> None:
        assert isinstance(e, LaneEmitter)
        printer(e, op)

    return emit


PRINTERS: dict[type[Operation], Printer] = {
    memref.LoadOp: _of_lanes(_load),
    memref.StoreOp: _of_lanes(_store),
    vector.LoadOp: _of_lanes(_load),
    vector.StoreOp: _of_lanes(_store),
    vector.MaskedLoadOp: _of_lanes(_masked_load),
    vector.MaskedStoreOp: _of_lanes(_masked_store),
    vector.BroadcastOp: _of_lanes(_broadcast),
    vector.FMAOp: _of_lanes(_fma),
    vector.ReductionOp: _of_lanes(_reduction),
    vector.ExtractOp: _of_lanes(_extract),
    vector.InsertOp: _of_lanes(_insert),
    vector.ShuffleOp: _of_lanes(_shuffle),
    vector.CreateMaskOp: _of_lanes(_create_mask),
    vector.BitcastOp: _of_lanes(_bitcast),
}
