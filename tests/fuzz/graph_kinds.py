"""The kinds of node that graphs are drawn of: elementwise, and those that move elements."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import graph_sums  # noqa: F401  registers the kinds that sum
import numpy as np
from draw_graph import FLOATS, KINDS, MOST, Graph, NoFit, Value
from onnx import helper

INTEGERS = ("int64", "int32", "int8", "uint8")
ANY = ("float32", "float64", "int64", "int32", "bool")
MOVED = (*ANY, "float16", "int8", "uint8")


def kind(name: str) -> Callable[[Callable[[Graph], None]], Callable[[Graph], None]]:
    """Register a kind of node."""

    def register(function: Callable[[Graph], None]) -> Callable[[Graph], None]:
        assert name not in KINDS, name
        KINDS[name] = function
        return function

    return register


#: Functions of a real number: the largest argument, the largest result, what else it takes.
SMOOTH: dict[str, tuple[float, Callable[[float], float], dict[str, Any]]] = {
    "Elu": (MOST, lambda m: max(m, 1), {"alpha": 0.75}),
    "Selu": (MOST, lambda m: 2 * max(m, 1), {}),
    "Celu": (MOST, lambda m: max(m, 1), {"alpha": 1.25}),
    "LeakyRelu": (MOST, lambda m: m, {"alpha": 0.125}),
    "Sigmoid": (MOST, lambda m: 1, {}),
    "HardSigmoid": (MOST, lambda m: 1, {}),
    "HardSwish": (MOST, lambda m: m, {}),
    "Tanh": (MOST, lambda m: 1, {}),
    "Softplus": (MOST, lambda m: m + 1, {}),
    "Softsign": (MOST, lambda m: 1, {}),
    "Mish": (MOST, lambda m: max(m, 1), {}),
    "Gelu": (MOST, lambda m: max(m, 1), {}),
    "Erf": (MOST, lambda m: 1, {}),
    "Exp": (4, lambda m: float(np.exp(m)), {}),
    "Sin": (64, lambda m: 1, {}),
    "Cos": (64, lambda m: 1, {}),
    "Atan": (MOST, lambda m: 2, {}),
    "Sinh": (4, lambda m: float(np.sinh(m)), {}),
    "Cosh": (4, lambda m: float(np.cosh(m)), {}),
    "Asinh": (MOST, lambda m: 15, {}),
}


def _smooth(op: str, g: Graph) -> None:
    limit, bound, attributes = SMOOTH[op]
    v = g.pick(("float32",), most=limit)
    g.add(op, [v], v.shape, v.dtype, most=bound(v.most), **attributes)


for _op in SMOOTH:
    kind(_op)(partial(_smooth, _op))


def _exact(op: str, dtypes: tuple[str, ...], g: Graph) -> None:
    """One that gives exact results of exact ones."""
    v = g.pick(dtypes)
    g.add(op, [v], v.shape, v.dtype, bits=v.bits, whole=v.whole, most=v.most)


for _op, _dtypes in {
    "Relu": ("float32", "float64", "float16", "int32"),
    "Abs": ("float32", "float64", "int64", "int32"),
    "Neg": ("float32", "float64", "float16", "int64", "int32"),
    "Identity": MOVED,
}.items():
    kind(_op)(partial(_exact, _op, _dtypes))


def _rounded(op: str, g: Graph) -> None:
    v = g.pick(("float32", "float64"), bits=True)
    g.add(op, [v], v.shape, v.dtype, bits=True, whole=True, most=v.most + 1)


for _op in ("Floor", "Ceil", "Round", "Sign"):
    kind(_op)(partial(_rounded, _op))


def _root(op: str, g: Graph) -> None:
    """A function of what is at least 1: of an absolute value and a number more."""
    v = g.pick(("float32",))
    low = g.add("Abs", [v], v.shape, v.dtype, bits=v.bits, whole=v.whole, most=v.most)
    more = g.add("Add", [low, g.constant(np.float32(1))], v.shape, v.dtype, most=v.most + 1, bits=v.bits, whole=v.whole)
    g.add(op, [more], v.shape, v.dtype, most=more.most)


for _op in ("Sqrt", "Log", "Reciprocal"):
    kind(_op)(partial(_root, _op))


def _broadcast(*values: Value) -> tuple[int, ...]:
    return tuple(np.broadcast_shapes(*(v.shape for v in values)))


def _binary(op: str, g: Graph) -> None:
    v = g.pick((*FLOATS, "float16", "int64", "int32"), most=1000 if op == "Mul" else MOST)
    w = g.other_operand(v)
    if g.random.random() < 0.5:
        v, w = w, v
    most = v.most * w.most if op == "Mul" else v.most + w.most
    whole = v.whole and w.whole and most < (2000 if v.dtype == "float16" else MOST)
    g.add(op, [v, w], _broadcast(v, w), v.dtype, bits=whole, whole=whole, most=most)


for _op in ("Add", "Sub", "Mul"):
    kind(_op)(partial(_binary, _op))


def _extreme(op: str, g: Graph) -> None:
    v = g.pick((*FLOATS, "int64", "int32"))
    ws = [g.other_operand(v) for _ in range(g.random.randint(0, 2))]
    all_of = [v, *ws]
    most = max(x.most for x in all_of)
    bits, whole = all(x.bits for x in all_of), all(x.whole for x in all_of)
    g.add(op, all_of, _broadcast(*all_of), v.dtype, bits=bits, whole=whole, most=most)


for _op in ("Min", "Max"):
    kind(_op)(partial(_extreme, _op))


@kind("Mean")
def _mean(g: Graph) -> None:
    v = g.pick(("float32",))
    w = g.other_operand(v)
    g.add("Mean", [v, w], _broadcast(v, w), v.dtype, most=max(v.most, w.most))


@kind("Div")
def _div(g: Graph) -> None:
    v = g.pick(("float32", "int32", "int64"))
    whole = v.dtype.startswith("int")
    shape = (1, *v.shape[1:]) if g.open else v.shape
    if g.random.random() < 0.5 and shape:
        shape = shape[-1:] if not g.open or v.rank > 1 else ()
    divisors = np.array([-7, -3, -2, -1, 1, 2, 3, 5])
    rng = np.random.default_rng(g.random.randrange(1 << 30))
    divisor = g.constant(rng.choice(divisors, shape).astype(v.dtype))
    g.add("Div", [v, divisor], v.shape, v.dtype, bits=whole, whole=whole, most=v.most)


@kind("Div by a live number")
def _div_live(g: Graph) -> None:
    v = g.pick(("float32", "int32"))
    w = g.other_operand(v)
    one = g.constant(np.array(5 if v.dtype == "int32" else 6, v.dtype))
    divisor = g.add("Add", [w, one], w.shape, v.dtype, bits=w.whole, whole=w.whole, most=w.most + 6)
    if w.most > 4:
        raise NoFit
    whole = v.dtype == "int32"
    g.add("Div", [v, divisor], _broadcast(v, w), v.dtype, bits=whole, whole=whole, most=v.most)


@kind("Mod")
def _mod(g: Graph) -> None:
    v = g.pick(("int32", "int64"))
    modulus = g.constant(np.array(g.random.choice((-5, -2, 3, 7)), v.dtype))
    g.add("Mod", [v, modulus], v.shape, v.dtype, bits=True, whole=True, most=7)


@kind("Pow")
def _pow(g: Graph) -> None:
    v = g.pick(("float32",), most=100)
    whole = v.whole and v.most < 100
    power = g.constant(np.float32(g.random.choice((2, 3))))
    g.add("Pow", [v, power], v.shape, v.dtype, bits=whole, whole=whole, most=max(v.most, 1) ** 3)


@kind("PRelu")
def _prelu(g: Graph) -> None:
    v = g.pick(("float32",), 1)
    slope = g.leaf("float32", (v.shape[-1],) if not g.open or v.rank > 1 else (1,), live=False)
    whole = v.whole and slope.whole
    g.add("PRelu", [v, slope], v.shape, v.dtype, bits=whole, whole=whole, most=4 * v.most)


def _compared(op: str, g: Graph) -> None:
    v = g.pick((*FLOATS, "int64", "int32"), bits=True)
    w = g.other_operand(v, exact=True)
    g.add(op, [v, w], _broadcast(v, w), "bool", bits=True, whole=True, most=1)


for _op in ("Greater", "Less", "Equal", "GreaterOrEqual", "LessOrEqual"):
    kind(_op)(partial(_compared, _op))


def _logical(op: str, g: Graph) -> None:
    v = g.pick(("bool",))
    w = g.other_operand(v)
    g.add(op, [v, w], _broadcast(v, w), "bool", bits=True, whole=True, most=1)


for _op in ("And", "Or", "Xor"):
    kind(_op)(partial(_logical, _op))


@kind("Not")
def _not(g: Graph) -> None:
    v = g.pick(("bool",))
    g.add("Not", [v], v.shape, "bool", bits=True, whole=True, most=1)


def _bitwise(op: str, g: Graph) -> None:
    v = g.pick(("int32", "int64", "uint8"), most=127)
    w = g.other_operand(v)
    g.add(op, [v, w], _broadcast(v, w), v.dtype, bits=True, whole=True, most=256)


for _op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
    kind(_op)(partial(_bitwise, _op))


@kind("Where")
def _where(g: Graph) -> None:
    c = g.pick(("bool",))
    v, w = (g.leaf(d, s) for d, s in [(g.random.choice(("float32", "int64")), c.shape)] * 2)
    g.add(
        "Where",
        [c, v, w],
        _broadcast(c, v, w),
        v.dtype,
        bits=v.bits and w.bits,
        whole=v.whole and w.whole,
        most=max(v.most, w.most),
    )


@kind("Clip")
def _clip(g: Graph) -> None:
    v = g.pick((*FLOATS, "int32", "int64"))
    limits: list[Value | str] = [g.constant(np.array(n, v.dtype)) for n in (-3, 2)]
    if g.random.random() < 0.3:
        limits[0] = ""
        g.add("Clip", [v, *limits], v.shape, v.dtype, bits=v.bits, whole=v.whole, most=v.most)
        return
    g.add("Clip", [v, *limits], v.shape, v.dtype, bits=v.bits, whole=v.whole, most=3)


@kind("Cast")
def _cast(g: Graph) -> None:
    v = g.pick((*ANY, "float16", "int8", "uint8"))
    legal = [d for d in ("float32", "float64", "float16", "int64", "int32", "bool", "int8", "uint8") if d != v.dtype]
    to = g.random.choice(legal)
    if to not in ("float32", "float64", "float16") and not v.bits:
        raise NoFit
    if (to in ("int8", "uint8") and (v.most > 100 or not v.whole)) or (to == "float16" and v.most > 2000):
        raise NoFit
    if to == "uint8" and v.dtype not in ("bool", "uint8"):
        raise NoFit
    whole = v.whole or to not in ("float32", "float64", "float16")
    code = int(helper.np_dtype_to_tensor_dtype(np.dtype(to)))
    g.add("Cast", [v], v.shape, to, bits=v.bits, whole=whole, most=1 if to == "bool" else v.most, to=code)


@kind("Transpose")
def _transpose(g: Graph) -> None:
    v = g.pick(MOVED, 2)
    perm = list(range(g.open, v.rank))
    g.random.shuffle(perm)
    perm = [0] * g.open + perm
    g.add("Transpose", [v], [v.shape[p] for p in perm], v.dtype, bits=v.bits, whole=v.whole, most=v.most, perm=perm)


def _same(g: Graph, op: str, inputs: list[Value | str], shape: list[int], v: Value, **attributes: Any) -> None:
    """A node that moves elements of ``v``."""
    g.add(op, inputs, shape, v.dtype, bits=v.bits, whole=v.whole, most=v.most, **attributes)


@kind("Reshape")
def _reshape(g: Graph) -> None:
    v = g.pick(MOVED, 1)
    inner = int(np.prod(v.shape[g.open :]))
    if inner == 0:
        raise NoFit
    factors, left = [], inner
    while left > 1 and len(factors) < 3 and g.random.random() < 0.8:
        f = g.random.choice([f for f in range(1, left + 1) if left % f == 0])
        factors.append(f)
        left //= f
    shape = [*factors, left]
    g.random.shuffle(shape)
    requested = [*shape]
    if g.random.random() < 0.4:
        requested[g.random.randrange(len(requested))] = -1
    target = g.constant(np.array([0] * g.open + requested, np.int64))
    _same(g, "Reshape", [v, target], [*v.shape[: g.open], *shape], v)


@kind("Flatten")
def _flatten(g: Graph) -> None:
    v = g.pick(MOVED, 2)
    axis = 1 if g.open else g.random.randint(0, v.rank)
    shape = [int(np.prod(v.shape[:axis])), int(np.prod(v.shape[axis:]))]
    _same(g, "Flatten", [v], shape, v, axis=axis)


@kind("Squeeze")
def _squeeze(g: Graph) -> None:
    v = g.pick(MOVED, 2)
    ones = [a for a in range(g.open, v.rank) if v.shape[a] == 1]
    if not ones:
        raise NoFit
    gone = g.random.sample(ones, g.random.randint(1, len(ones)))
    shape = [e for a, e in enumerate(v.shape) if a not in gone]
    _same(g, "Squeeze", [v, g.constant(np.array(gone, np.int64))], shape, v)


@kind("Unsqueeze")
def _unsqueeze(g: Graph) -> None:
    v = g.pick(MOVED, 0, 3)
    axis = g.random.randint(int(g.open), v.rank)
    shape = [*v.shape[:axis], 1, *v.shape[axis:]]
    _same(g, "Unsqueeze", [v, g.constant(np.array([axis], np.int64))], shape, v)


@kind("Concat")
def _concat(g: Graph) -> None:
    v = g.pick(MOVED, 1)
    axis = g.axis(v)
    parts: list[Value] = [v]
    for _ in range(g.random.randint(1, 3)):
        shape = [*v.shape]
        shape[axis] = g.extent()
        same = [
            w
            for w in g.values
            if w.dtype == v.dtype
            and w.rank == v.rank
            and all(a == b for i, (a, b) in enumerate(zip(w.shape, v.shape, strict=True)) if i != axis)
        ]
        again = same and g.random.random() < 0.6
        parts.append(g.random.choice(same) if again else g.leaf(v.dtype, shape, live=g.open or None))
    g.random.shuffle(parts)
    shape = [*v.shape]
    shape[axis] = sum(p.shape[axis] for p in parts)
    g.add(
        "Concat",
        parts,
        shape,
        v.dtype,
        bits=all(p.bits for p in parts),
        whole=all(p.whole for p in parts),
        most=max(p.most for p in parts),
        axis=axis,
    )


@kind("Split")
def _split(g: Graph) -> None:
    v = g.pick(MOVED, 1)
    axis = g.axis(v)
    if v.shape[axis] < 2:
        raise NoFit
    cut = g.random.randint(1, v.shape[axis] - 1)
    sizes = [cut, v.shape[axis] - cut]
    outputs = [Value("", v.dtype, (*v.shape[:axis], n, *v.shape[axis + 1 :]), v.bits, v.whole, v.most) for n in sizes]
    g.add_several("Split", [v, g.constant(np.array(sizes, np.int64))], outputs, axis=axis)


@kind("Slice")
def _slice(g: Graph) -> None:
    v = g.pick(MOVED, 1)
    axes = g.axes(v)
    starts, ends, steps, shape = [], [], [], [*v.shape]
    for a in axes:
        n, step = v.shape[a], g.random.choice((1, 1, 1, 2, 3, -1, -2))
        low, high = sorted((g.random.randint(0, n), g.random.randint(0, n)))
        if high == low and not g.zero:
            low, high = 0, n
        start, end = (low, high) if step > 0 else (high - 1, low - 1 - n if low == 0 else low - 1)
        starts.append(start)
        ends.append(end)
        steps.append(step)
        shape[a] = len(range(n)[slice(start if start >= 0 or step > 0 else 0, end if end >= 0 else None, step)])
        if high == low:
            shape[a] = 0
    values = [g.constant(np.array(each, np.int64)) for each in (starts, ends, axes, steps)]
    _same(g, "Slice", [v, *values], shape, v)


@kind("Pad")
def _pad(g: Graph) -> None:
    v = g.pick(("float32", "float64", "int64", "int32"), 1)
    mode = g.random.choice(("constant", "constant", "edge", "reflect"))
    before, after = [0] * v.rank, [0] * v.rank
    for a in g.axes(v):
        capacity = 3 if mode == "constant" else 3 if mode == "edge" and v.shape[a] else max(v.shape[a] - 1, 0)
        before[a], after[a] = (g.random.randint(0, min(capacity, 3)) for _ in range(2))
    shape = [b + e + c for b, e, c in zip(before, v.shape, after, strict=True)]
    inputs: list[Value | str] = [v, g.constant(np.array([*before, *after], np.int64))]
    if mode == "constant" and g.random.random() < 0.5:
        inputs.append(g.constant(np.array(3, v.dtype)))
    _same(g, "Pad", inputs, shape, Value(v.name, v.dtype, v.shape, v.bits, v.whole, max(v.most, 3)), mode=mode)


@kind("Tile")
def _tile(g: Graph) -> None:
    v = g.pick(MOVED, 1)
    repeats = [1 if a < g.open else g.random.choice((1, 1, 2, 3)) for a in range(v.rank)]
    shape = [r * e for r, e in zip(repeats, v.shape, strict=True)]
    _same(g, "Tile", [v, g.constant(np.array(repeats, np.int64))], shape, v)


@kind("Expand")
def _expand(g: Graph) -> None:
    v = g.pick(MOVED, 1)
    shape = [e if e != 1 or a < g.open else g.extent() for a, e in enumerate(v.shape)]
    requested = [1 if a < g.open or (g.random.random() < 0.3 and e == v.shape[a]) else e for a, e in enumerate(shape)]
    _same(g, "Expand", [v, g.constant(np.array(requested, np.int64))], shape, v)


def _places(g: Graph, extent: int, shape: list[int], dtype: str = "int64") -> str:
    if extent == 0:
        raise NoFit
    rng = np.random.default_rng(g.random.randrange(1 << 30))
    return g.constant(rng.integers(-extent, extent, shape).astype(dtype))


@kind("Gather")
def _gather(g: Graph) -> None:
    v = g.pick(MOVED, 1, 4)
    axis = g.axis(v)
    places = [g.extent() for _ in range(g.random.randint(0, 2))]
    index = _places(g, v.shape[axis], places, g.random.choice(("int64", "int32")))
    _same(g, "Gather", [v, index], [*v.shape[:axis], *places, *v.shape[axis + 1 :]], v, axis=axis)


@kind("Gather at live places")
def _gather_live(g: Graph) -> None:
    if g.open:
        raise NoFit
    v = g.pick(MOVED, 1, 4)
    axis = g.axis(v)
    if v.shape[axis] < 5:
        raise NoFit
    index = g.leaf("int64", [g.extent()], live=True)
    _same(g, "Gather", [v, index], [*v.shape[:axis], *index.shape, *v.shape[axis + 1 :]], v, axis=axis)


@kind("GatherElements")
def _gather_elements(g: Graph) -> None:
    v = g.pick(("float32", "float64", "int64", "int32"), 1)
    if g.open:
        raise NoFit
    axis = g.axis(v)
    shape = [*v.shape]
    shape[axis] = g.extent()
    _same(g, "GatherElements", [v, _places(g, v.shape[axis], shape)], shape, v, axis=axis)


@kind("GatherND")
def _gather_nd(g: Graph) -> None:
    v = g.pick(("float32", "float64", "int64", "int32"), 2)
    if g.open or 0 in v.shape:
        raise NoFit
    count, depth = g.random.choice((1, 3, 17)), g.random.randint(1, v.rank)
    rng = np.random.default_rng(g.random.randrange(1 << 30))
    index = np.stack([rng.integers(-e, e, count) for e in v.shape[:depth]], 1)
    _same(g, "GatherND", [v, g.constant(index)], [count, *v.shape[depth:]], v)


@kind("ScatterElements")
def _scatter_elements(g: Graph) -> None:
    v = g.pick(("float32", "int64", "int32"), 1)
    if g.open:
        raise NoFit
    axis = g.axis(v)
    shape = [*v.shape]
    shape[axis] = g.random.randint(1, 2) if v.shape[axis] > 1 else 1
    if v.shape[axis] < 1:
        raise NoFit
    rng = np.random.default_rng(g.random.randrange(1 << 30))
    order = np.argsort(rng.random(v.shape), axis)  # each place once
    index = np.take(order, range(shape[axis]), axis)
    update = g.leaf(v.dtype, shape)
    g.add(
        "ScatterElements",
        [v, g.constant(index), update],
        v.shape,
        v.dtype,
        bits=v.bits and update.bits,
        whole=v.whole and update.whole,
        most=max(v.most, update.most),
        axis=axis,
    )


@kind("ScatterND")
def _scatter_nd(g: Graph) -> None:
    v = g.pick(("float32", "int64", "int32"), 2)
    if g.open or v.shape[0] < 1:
        raise NoFit
    count = g.random.randint(1, v.shape[0])
    rng = np.random.default_rng(g.random.randrange(1 << 30))
    index = rng.permutation(v.shape[0])[:count, None]
    update = g.leaf(v.dtype, [count, *v.shape[1:]])
    reduction = g.random.choice(("none", "add", "max"))
    if reduction == "add" and not (v.whole and update.whole):
        reduction = "max"
    g.add(
        "ScatterND",
        [v, g.constant(index), update],
        v.shape,
        v.dtype,
        bits=v.bits and update.bits,
        whole=v.whole and update.whole,
        most=v.most + update.most,
        reduction=reduction,
    )


def _blocks(op: str, g: Graph) -> None:
    v = g.pick(("float32",), 4, 4)
    n, c, h, w = v.shape
    size = 2
    if op == "DepthToSpace":
        if c % 4:
            raise NoFit
        mode = g.random.choice(("DCR", "CRD"))
        _same(g, op, [v], [n, c // 4, h * 2, w * 2], v, blocksize=size, mode=mode)
        return
    if h % 2 or w % 2:
        raise NoFit
    _same(g, op, [v], [n, c * 4, h // 2, w // 2], v, blocksize=size)


for _op in ("DepthToSpace", "SpaceToDepth"):
    kind(_op)(partial(_blocks, _op))


@kind("Trilu")
def _trilu(g: Graph) -> None:
    v = g.pick(("float32", "float64", "int64", "bool"), 2 + g.open)
    offset = g.constant(np.array(g.random.randint(-2, 2), np.int64))
    _same(g, "Trilu", [v, offset], [*v.shape], v, upper=g.random.randint(0, 1))


@kind("OneHot")
def _one_hot(g: Graph) -> None:
    v = g.pick(("int64", "int32"), 1, 3)
    depth = g.random.choice((2, 5, 17))
    values = g.constant(np.array([-1, 3], np.float32))
    axis = g.random.randint(int(g.open), v.rank)
    shape = [*v.shape[:axis], depth, *v.shape[axis:]]
    inputs: list[Value | str] = [v, g.constant(np.array(depth, np.int64)), values]
    g.add("OneHot", inputs, shape, "float32", bits=True, whole=True, axis=axis)


@kind("Resize")
def _resize(g: Graph) -> None:
    v = g.pick(("float32",), 3, 4)
    if 0 in v.shape:
        raise NoFit
    mode = g.random.choice(("nearest", "nearest", "linear"))
    scales = [1.0, 1.0, *(g.random.choice((1.0, 2.0, 3.0)) for _ in range(v.rank - 2))]
    shape = [int(e * s) for e, s in zip(v.shape, scales, strict=True)]
    inputs: list[Value | str] = [v, "", g.constant(np.array(scales, np.float32))]
    exact = mode == "nearest"
    g.add(
        "Resize",
        inputs,
        shape,
        v.dtype,
        bits=v.bits and exact,
        whole=v.whole and exact,
        most=v.most,
        mode=mode,
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )
