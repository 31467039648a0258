"""The kinds of node that graphs are drawn of: those that sum, compare along axes, normalize and quantize."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from draw_graph import KINDS, MOST, Graph, NoFit, Value


def kind(name: str) -> Callable[[Callable[[Graph], None]], Callable[[Graph], None]]:
    """Register a kind of node."""

    def register(function: Callable[[Graph], None]) -> Callable[[Graph], None]:
        assert name not in KINDS, name
        KINDS[name] = function
        return function

    return register


def _summed(
    g: Graph, op: str, terms: int, v: Value, w: Value, shape: list[int], more: Sequence[Value] = (), **attributes: Any
) -> Value:
    """A node of sums of ``terms`` products of ``v`` and ``w``."""
    most = terms * v.most * w.most + sum(x.most for x in more)
    whole = all(x.whole for x in (v, w, *more)) and most < (2000 if v.dtype == "float16" else MOST)
    return g.add(op, [v, w, *more], shape, v.dtype, bits=whole, whole=whole, most=max(most, 1), **attributes)


@kind("MatMul")
def _matmul(g: Graph) -> None:
    v = g.pick(("float32", "float32", "float64", "float16"), 2, 4, most=300)
    k, n = v.shape[-1], g.extent()
    if g.open and v.rank == 2 and v.shape[-1] == 0:
        raise NoFit
    batch = [*v.shape[:-2]] if not g.open and g.random.random() < 0.3 else []
    _summed(g, "MatMul", k, v, g.leaf(v.dtype, [*batch, k, n], live=False if g.open else None), [*v.shape[:-1], n])


@kind("MatMul of two")
def _matmul_of_two(g: Graph) -> None:
    v = g.pick(("float32",), 2 + g.open, 4, most=300)
    n = g.extent()
    w = g.leaf(v.dtype, [*v.shape[:-2], v.shape[-1], n], live=True)
    _summed(g, "MatMul", v.shape[-1], v, w, [*v.shape[:-1], n])


@kind("Gemm")
def _gemm(g: Graph) -> None:
    v = g.pick(("float32",), 2, 2, most=300)
    across = g.random.random() < 0.3 and not g.open
    m, k = v.shape[::-1] if across else v.shape
    n = g.extent()
    transposed = g.random.random() < 0.5
    w = g.leaf(v.dtype, [n, k] if transposed else [k, n], live=False if g.open else None)
    bias = [g.leaf(v.dtype, g.random.choice(([n], [1, n], [])), live=False)] if g.random.random() < 0.7 else []
    attributes = {"transA": int(across), "transB": int(transposed)}
    _summed(g, "Gemm", k, v, w, [m, n], bias, **attributes)


@kind("Einsum")
def _einsum(g: Graph) -> None:
    v = g.pick(("float32",), 2, 3, most=300)
    if g.open:
        raise NoFit
    if v.rank == 2:
        a, b = v.shape
        c = g.extent()
        equation, w_shape, shape, terms = g.random.choice(
            (
                ("ab,ab->a", [a, b], [a], b),
                ("ab,ac->a", [a, c], [a], b * c),
                ("ab,cb->ac", [c, b], [a, c], b),
                ("ab,ab->", [a, b], [], a * b),
                ("ab,bc->ca", [b, c], [c, a], b),
            )
        )
    else:
        b, h, d = v.shape
        n = g.extent()
        equation, w_shape, shape, terms = g.random.choice(
            (
                ("bhd,hd->bh", [h, d], [b, h], d),
                ("bhd,bnd->bhn", [b, n, d], [b, h, n], d),
                ("bhd,dn->nbh", [d, n], [n, b, h], d),
            )
        )
    _summed(g, "Einsum", terms, v, g.leaf(v.dtype, w_shape), shape, equation=equation)


@kind("Conv")
def _conv(g: Graph) -> None:
    v = g.pick(("float32",), 3, 4, most=300)
    n, c, *space = v.shape
    group = g.random.choice([1, 1, 1, *([c] if c else []), *([2] if c and c % 2 == 0 else [])])
    if 0 in v.shape:
        raise NoFit
    outputs = group * g.random.choice((1, 2, 3, 17) if group < 8 else (1, 2))
    kernel = [g.random.choice((1, 2, 3)) for _ in space]
    strides = [g.random.choice((1, 1, 2)) for _ in space]
    dilations = [g.random.choice((1, 1, 2)) for _ in space]
    pads = [g.random.randint(0, 1) for _ in range(2 * len(space))]
    rank = len(space)
    shape = [
        (e + pads[i] + pads[i + rank] - d * (k - 1) - 1) // s + 1
        for i, (e, k, s, d) in enumerate(zip(space, kernel, strides, dilations, strict=True))
    ]
    if min(shape) < 1:
        raise NoFit
    w = g.leaf(v.dtype, [outputs, c // group, *kernel], live=not (g.open or g.random.random() < 0.8))
    bias = [g.leaf(v.dtype, [outputs], live=False)] if g.random.random() < 0.5 else []
    _summed(
        g,
        "Conv",
        c // group * int(np.prod(kernel)),
        v,
        w,
        [n, outputs, *shape],
        bias,
        group=group,
        strides=strides,
        dilations=dilations,
        pads=pads,
        kernel_shape=kernel,
    )


@kind("ConvTranspose")
def _conv_transpose(g: Graph) -> None:
    v = g.pick(("float32",), 3, 4, most=300)
    n, c, *space = v.shape
    if 0 in v.shape:
        raise NoFit
    group = g.random.choice((1, 1, c))
    outputs = g.random.choice((1, 2, 5))
    kernel = [g.random.choice((1, 2, 3)) for _ in space]
    strides = [g.random.choice((1, 2)) for _ in space]
    shape = [s * (e - 1) + k for e, k, s in zip(space, kernel, strides, strict=True)]
    w = g.leaf(v.dtype, [c, outputs, *kernel], live=not (g.open or g.random.random() < 0.8))
    terms = c // group * int(np.prod(kernel))
    attributes = {"group": group, "strides": strides, "kernel_shape": kernel}
    _summed(g, "ConvTranspose", terms, v, w, [n, group * outputs, *shape], **attributes)


def _pool(op: str, g: Graph) -> None:
    v = g.pick(("float32",), 3, 4)
    n, c, *space = v.shape
    if 0 in v.shape:
        raise NoFit
    kernel = [g.random.choice((1, 2, 3)) for _ in space]
    strides = [g.random.choice((1, 2)) for _ in space]
    pads = [g.random.randint(0, k - 1) for k in (*kernel, *kernel)]
    rank = len(space)
    shape = [
        (e + pads[i] + pads[i + rank] - k) // s + 1
        for i, (e, k, s) in enumerate(zip(space, kernel, strides, strict=True))
    ]
    if min(shape) < 1:
        raise NoFit
    attributes: dict[str, Any] = {"kernel_shape": kernel, "strides": strides, "pads": pads}
    if op == "AveragePool":
        attributes["count_include_pad"] = g.random.randint(0, 1)
    exact = op == "MaxPool"
    most = v.most * (9 if op == "LpPool" else 1)
    g.add(op, [v], [n, c, *shape], v.dtype, bits=v.bits and exact, whole=v.whole and exact, most=most, **attributes)


def _global_pool(op: str, g: Graph) -> None:
    v = g.pick(("float32",), 3, 4)
    if 0 in v.shape:
        raise NoFit
    exact = op == "GlobalMaxPool"
    shape = [*v.shape[:2], *(1 for _ in v.shape[2:])]
    g.add(op, [v], shape, v.dtype, bits=v.bits and exact, whole=v.whole and exact, most=v.most)


for _op in ("MaxPool", "AveragePool", "LpPool"):
    kind(_op)(partial(_pool, _op))
for _op in ("GlobalMaxPool", "GlobalAveragePool"):
    kind(_op)(partial(_global_pool, _op))

#: Reductions: whether sums of integers stay integers, and the largest result of so many of ``m``.
REDUCTIONS: dict[str, tuple[bool, Callable[[float, int], float]]] = {
    "ReduceSum": (True, lambda m, n: m * n),
    "ReduceMean": (False, lambda m, n: m),
    "ReduceMax": (True, lambda m, n: m),
    "ReduceMin": (True, lambda m, n: m),
    "ReduceL1": (True, lambda m, n: m * n),
    "ReduceL2": (False, lambda m, n: m * n),
    "ReduceSumSquare": (True, lambda m, n: m * m * n),
    "ReduceLogSumExp": (False, lambda m, n: m + 7),
}


def _reduce(op: str, g: Graph) -> None:
    exact, bound = REDUCTIONS[op]
    v = g.pick(("float32", "float64", "int32") if exact else ("float32",), 1)
    axes = g.axes(v)
    if any(v.shape[a] == 0 for a in axes) and op != "ReduceSum":
        raise NoFit
    count = int(np.prod([v.shape[a] for a in axes]))
    keep = g.random.randint(0, 1)
    shape = [1 if a in axes else e for a, e in enumerate(v.shape) if keep or a not in axes]
    most = max(bound(v.most, count), 1)
    extreme = op in ("ReduceMax", "ReduceMin")
    whole = v.whole and exact
    given: dict[str, Any] = {"keepdims": keep}
    inputs: list[Value | str] = [v, g.constant(np.array(axes, np.int64))]
    g.add(op, inputs, shape, v.dtype, bits=v.bits if extreme else whole, whole=whole, most=most, **given)


for _op in REDUCTIONS:
    kind(_op)(partial(_reduce, _op))


def _location_of_extreme(op: str, g: Graph) -> None:
    v = g.pick(("float32", "int32"), 1, bits=True)
    axis, keep = g.axis(v), g.random.randint(0, 1)
    if v.shape[axis] == 0:
        raise NoFit
    shape = [1 if a == axis else e for a, e in enumerate(v.shape) if keep or a != axis]
    last = g.random.randint(0, 1)
    given = {"axis": axis, "keepdims": keep, "select_last_index": last}
    g.add(op, [v], shape, "int64", bits=True, whole=True, most=max(v.shape[axis], 1), **given)


for _op in ("ArgMax", "ArgMin"):
    kind(_op)(partial(_location_of_extreme, _op))


def _softmax(op: str, g: Graph) -> None:
    v = g.pick(("float32",), 1, most=50)
    axis = g.axis(v)
    if 0 in v.shape:
        raise NoFit
    most = 1.0 if op == "Softmax" else 2 * v.most + 10
    g.add(op, [v], v.shape, v.dtype, most=most, axis=axis)


for _op in ("Softmax", "LogSoftmax"):
    kind(_op)(partial(_softmax, _op))


@kind("Hardmax")
def _hardmax(g: Graph) -> None:
    v = g.pick(("float32",), 1, bits=True)
    if 0 in v.shape:
        raise NoFit
    g.add("Hardmax", [v], v.shape, v.dtype, bits=True, whole=True, most=1, axis=g.axis(v))


@kind("LayerNormalization")
def _layer_norm(g: Graph) -> None:
    v = g.pick(("float32",), 2, most=1000)
    axis = g.random.randint(1, v.rank - 1)
    if 0 in v.shape:
        raise NoFit
    parameters = [g.leaf("float32", v.shape[axis:], live=False) for _ in range(g.random.randint(1, 2))]
    g.add("LayerNormalization", [v, *parameters], v.shape, v.dtype, most=400, axis=axis, epsilon=0.5)


@kind("BatchNormalization")
def _batch_norm(g: Graph) -> None:
    v = g.pick(("float32",), 2, 4, most=1000)
    c = v.shape[1]
    parameters: list[Value | str] = [g.leaf("float32", [c], live=False) for _ in range(3)]
    spread = np.random.default_rng(g.random.randrange(1 << 30)).uniform(0.5, 2, c)
    parameters.append(g.constant(spread.astype(np.float32)))
    g.add("BatchNormalization", [v, *parameters], v.shape, v.dtype, most=10 * v.most + 40)


@kind("InstanceNormalization")
def _instance_norm(g: Graph) -> None:
    v = g.pick(("float32",), 3, 4, most=1000)
    if 0 in v.shape:
        raise NoFit
    parameters = [g.leaf("float32", [v.shape[1]], live=False) for _ in range(2)]
    g.add("InstanceNormalization", [v, *parameters], v.shape, v.dtype, most=400, epsilon=0.5)


@kind("LRN")
def _lrn(g: Graph) -> None:
    v = g.pick(("float32",), 4, 4, most=1000)
    if 0 in v.shape:
        raise NoFit
    g.add("LRN", [v], v.shape, v.dtype, most=v.most, size=g.random.choice((1, 3, 5)))


@kind("CumSum")
def _cumsum(g: Graph) -> None:
    v = g.pick(("float32", "int32", "int64"), 1)
    axis = g.axis(v)
    most = max(v.most * v.shape[axis], 1)
    inputs: list[Value | str] = [v, g.constant(np.array(axis, np.int64))]
    given = {"exclusive": g.random.randint(0, 1), "reverse": g.random.randint(0, 1)}
    g.add("CumSum", inputs, v.shape, v.dtype, bits=v.whole, whole=v.whole, most=most, **given)


@kind("TopK")
def _top_k(g: Graph) -> None:
    v = g.pick(("float32", "int64"), 1, bits=True)
    axis = g.axis(v)
    if v.shape[axis] == 0:
        raise NoFit
    k = g.random.randint(1, v.shape[axis])
    shape = (*v.shape[:axis], k, *v.shape[axis + 1 :])
    outputs = [
        Value("", v.dtype, shape, True, v.whole, v.most),
        Value("", "int64", shape, True, True, max(v.shape[axis], 1)),
    ]
    given = {"axis": axis, "largest": g.random.randint(0, 1)}
    g.add_several("TopK", [v, g.constant(np.array([k], np.int64))], outputs, **given)


@kind("QuantizeLinear")
def _quantize(g: Graph) -> None:
    v = g.pick(("float32",), 1, bits=True)
    dtype = g.random.choice(("uint8", "int8"))
    zero = g.constant(np.array(g.random.choice((0, 3)), dtype))
    scale = g.constant(np.float32(g.random.choice((0.25, 0.5, 2))))
    g.add("QuantizeLinear", [v, scale, zero], v.shape, dtype, bits=True, whole=True, most=255)


@kind("DequantizeLinear")
def _dequantize(g: Graph) -> None:
    v = g.pick(("uint8", "int8"), 1)
    zero = g.constant(np.array(g.random.choice((0, 3)), v.dtype))
    scale = g.constant(np.float32(g.random.choice((0.25, 1, 2))))
    g.add("DequantizeLinear", [v, scale, zero], v.shape, "float32", bits=True, most=600)


@kind("MatMulInteger")
def _matmul_integer(g: Graph) -> None:
    v = g.pick(("uint8", "int8"), 2, 3)
    k, n = v.shape[-1], g.extent()
    if 0 in v.shape:
        raise NoFit
    w = g.leaf("int8", [k, n], live=False)
    zeros: list[Value | str] = [g.constant(np.array(2, v.dtype))] if g.random.random() < 0.5 else []
    most = k * (v.most + 2) * 4
    g.add("MatMulInteger", [v, w, *zeros], [*v.shape[:-1], n], "int32", bits=True, whole=True, most=max(most, 1))


@kind("ConvInteger")
def _conv_integer(g: Graph) -> None:
    v = g.pick(("uint8",), 4, 4)
    n, c, h, w = v.shape
    if 0 in v.shape:
        raise NoFit
    outputs = g.random.choice((1, 3, 17))
    weights = g.leaf("uint8", [outputs, c, 1, 1], live=False)
    g.add("ConvInteger", [v, weights], [n, outputs, h, w], "int32", bits=True, whole=True, most=c * v.most * 4)


@kind("QLinearMatMul")
def _qlinear_matmul(g: Graph) -> None:
    v = g.pick(("uint8",), 2, 2)
    k, n = v.shape[1], g.extent()
    if 0 in v.shape or n == 0:
        raise NoFit
    w = g.leaf("uint8", [k, n], live=False)
    scale, zero = g.constant(np.float32(0.5)), g.constant(np.uint8(1))
    inputs: list[Value | str] = [v, scale, zero, w, scale, zero, g.constant(np.float32(2)), zero]
    g.add("QLinearMatMul", inputs, [v.shape[0], n], "uint8", bits=True, whole=True, most=255)


def _recurrent(op: str, gates: int, g: Graph) -> None:
    if g.open:
        raise NoFit
    v = g.pick(("float32",), 3, 3, most=50)
    steps, batch, size = v.shape
    if 0 in v.shape or steps > 8:
        raise NoFit
    hidden, directions = g.random.choice((1, 3, 17)), g.random.choice((1, 2))
    w = g.leaf("float32", [directions, gates * hidden, size], live=False, whole=False)
    r = g.leaf("float32", [directions, gates * hidden, hidden], live=False, whole=False)
    direction = "bidirectional" if directions == 2 else g.random.choice(("forward", "reverse"))
    shape = [steps, directions, batch, hidden]
    g.add(op, [v, w, r], shape, "float32", most=1, hidden_size=hidden, direction=direction)


for _op, _gates in {"LSTM": 4, "GRU": 3, "RNN": 1}.items():
    kind(_op)(partial(_recurrent, _op, _gates))
