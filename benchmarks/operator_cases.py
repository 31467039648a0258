"""One node of each operator at three sizes, for operator_times.py: small (a call's overhead counts), medium, large."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from onnx import numpy_helper

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Const:
    """An operand that the model holds as an initializer."""

    array: Array


@dataclass(frozen=True)
class Node:
    """A node and its operands: arrays are inputs of the model, None is an operand that is left out."""

    op_type: str
    operands: tuple[Array | Const | None, ...]
    outputs: int = 1
    opset: int = 18
    domain: str = ""
    attributes: dict[str, Any] = field(default_factory=dict)


Case = Callable[[int], Node]
_RANDOM = np.random.default_rng(0)

#: Extents of a matrix, and of an image with channels first, at each size.
ROWS, COLUMNS = (16, 128, 1024), (64, 512, 1024)
CHANNELS, PIXELS = (8, 32, 64), (14, 28, 112)


def floats(*shape: int, low: float = -3.0, high: float = 3.0) -> Array:
    return _RANDOM.uniform(low, high, shape).astype(np.float32)


def integers(*shape: int, below: int = 100, dtype: type = np.int64) -> Array:
    return _RANDOM.integers(0, below, shape).astype(dtype)


def booleans(*shape: int) -> Array:
    return _RANDOM.random(shape) < 0.5


def const(*values: Any, dtype: type = np.int64) -> Const:
    """A 1-D constant."""
    return Const(np.array(values, dtype))


def scalar(value: Any, dtype: type = np.int64) -> Const:
    return Const(np.array(value, dtype))


def matrix(size: int, **options: float) -> Array:
    return floats(ROWS[size], COLUMNS[size], **options)


def image(size: int, **options: float) -> Array:
    return floats(1, CHANNELS[size], PIXELS[size], PIXELS[size], **options)


def byte_image(size: int) -> Array:
    return integers(1, CHANNELS[size], PIXELS[size], PIXELS[size], below=256, dtype=np.uint8)


def _node(op_type: str, *operands: Array | Const | None, outputs: int = 1, opset: int = 18, **attributes: Any) -> Node:
    return Node(op_type, operands, outputs, opset, "", attributes)


def _contrib(op_type: str, *operands: Array | Const | None, outputs: int = 1, **attributes: Any) -> Node:
    return Node(op_type, operands, outputs, 18, "com.microsoft", attributes)


def _learned(
    op_type: str, *operands: Array | Const | None, outputs: int = 1, opset: int = 1, **attributes: Any
) -> Node:
    return Node(op_type, operands, outputs, opset, "ai.onnx.ml", attributes)


# Operators on one tensor of floats: name, range of the data, opset, attributes.
_UNARY: tuple[tuple[str, float, float, int], ...] = (
    *(
        (name, -3.0, 3.0, 18)
        for name in (
            "Abs",
            "Asinh",
            "Atan",
            "Ceil",
            "Celu",
            "Cos",
            "Cosh",
            "Elu",
            "Erf",
            "Exp",
            "Floor",
            "HardSigmoid",
            "HardSwish",
            "Identity",
            "IsInf",
            "IsNaN",
            "LeakyRelu",
            "Mish",
            "Neg",
            "Relu",
            "Round",
            "Selu",
            "Shrink",
            "Sigmoid",
            "Sign",
            "Sin",
            "Sinh",
            "Softplus",
            "Softsign",
            "Tan",
            "Tanh",
            "ThresholdedRelu",
            "Softmax",
            "LogSoftmax",
            "Hardmax",
            "Flatten",
            "LpNormalization",
        )
    ),
    *((name, -0.9, 0.9, 18) for name in ("Acos", "Asin", "Atanh")),
    *((name, 1.1, 3.0, 18) for name in ("Acosh", "Log", "Reciprocal", "Sqrt")),
    ("Gelu", -3.0, 3.0, 20),
)
_BINARY = (
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Max",
    "Min",
    "Mean",
    "Sum",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "Equal",
)
_REDUCTIONS = (
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSumSquare",
)


def _unary(name: str, low: float, high: float, opset: int, size: int) -> Node:
    return _node(name, matrix(size, low=low, high=high), opset=opset)


def _binary(name: str, size: int) -> Node:
    return _node(name, matrix(size, low=0.5), matrix(size, low=0.5))


def _logical(name: str, size: int) -> Node:
    shape = ROWS[size], COLUMNS[size]
    return _node(name, booleans(*shape), booleans(*shape))


def _bitwise(name: str, size: int) -> Node:
    shape = ROWS[size], COLUMNS[size]
    return _node(name, integers(*shape, dtype=np.int32), integers(*shape, dtype=np.int32))


def _reduction(name: str, axis: int, size: int) -> Node:
    return _node(name, matrix(size, low=0.5, high=1.5), const(axis))


def _pool(name: str, size: int, **attributes: Any) -> Node:
    return _node(name, image(size), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], **attributes)


def _convolution(size: int, group: int, kernel: int) -> Node:
    channels = CHANNELS[size]
    weights = Const(floats(channels, channels // group, kernel, kernel))
    half = kernel // 2
    return _node("Conv", image(size), weights, Const(floats(channels)), group=group, pads=[half] * 4)


def _transposed(size: int, axes: int, kernel: int) -> Node:
    extent = {1: (64, 512, 4096), 2: (14, 28, 56), 3: (6, 10, 16)}[axes][size]
    channels = (4, 16, 16)[size]
    weights = Const(floats(channels, channels, *[kernel] * axes))
    return _node("ConvTranspose", floats(1, channels, *[extent] * axes), weights, strides=[2] * axes)


def _recurrent(name: str, gates: int, outputs: int, size: int) -> Node:
    steps, units = (10, 20, 50)[size], (32, 64, 256)[size]
    weights = (Const(floats(1, gates * units, units, low=-0.1, high=0.1)) for _ in "WR")
    return _node(name, floats(steps, 1, units), *weights, outputs=outputs, hidden_size=units)


def _resize(mode: str, scale: float, size: int) -> Node:
    return _node("Resize", image(size), None, const(1, 1, scale, scale, dtype=np.float32), mode=mode)


def _scatter(name: str, size: int, **attributes: Any) -> Node:
    rows, columns = ROWS[size], COLUMNS[size]
    return _node(name, matrix(size), integers(rows // 2, columns, below=rows), floats(rows // 2, columns), **attributes)


def _scatter_nd(size: int) -> Node:
    rows = ROWS[size]
    return _node("ScatterND", matrix(size), integers(rows // 2, 1, below=rows), floats(rows // 2, COLUMNS[size]))


def _top_k(retained: int, size: int) -> Node:
    return _node(
        "TopK", floats(8, (100, 1000, 10000)[size]), const((retained // 10, retained, retained)[size]), outputs=2
    )


def _boxes(size: int) -> Node:
    count, classes = ((100, 1), (2000, 20), (8400, 80))[size]
    centers, extents = _RANDOM.random((1, count, 2)) * 600, _RANDOM.random((1, count, 2)) * 60
    boxes = np.concatenate([centers - extents / 2, centers + extents / 2], -1).astype(np.float32)
    scores = (_RANDOM.random((1, classes, count)) ** 4).astype(np.float32)
    limits = const(100), const(0.5, dtype=np.float32), const(0.25, dtype=np.float32)
    return _node("NonMaxSuppression", boxes, scores, *limits)


def _deformed(size: int) -> Node:
    channels, pixels = (8, 32, 64)[size], (10, 20, 40)[size]
    offset, mask = floats(1, 18, pixels, pixels), floats(1, 9, pixels, pixels, low=0.0)
    weights, bias = Const(floats(channels, channels, 3, 3)), Const(floats(channels))
    operands = floats(1, channels, pixels, pixels), weights, offset, bias, mask
    return _node("DeformConv", *operands, opset=19, pads=[1] * 4, kernel_shape=[3, 3])


def _columns(size: int) -> Node:
    channels, pixels = (8, 16, 64)[size], (14, 28, 56)[size]
    return _node("Col2Im", floats(1, 9 * channels, pixels**2), const(pixels, pixels), const(3, 3), pads=[1] * 4)


def _unpooled(size: int) -> Node:
    channels, pixels = (8, 32, 64)[size], (7, 14, 28)[size]
    places = (np.arange(channels * pixels**2) * 4).reshape(1, channels, pixels, pixels)
    return _node("MaxUnpool", floats(1, channels, pixels, pixels), places, kernel_shape=[2, 2], strides=[2, 2])


def _regions(name: str, size: int) -> Node:
    count = (4, 32, 128)[size]
    corners = _RANDOM.random((count, 2)) * 5
    boxes = np.concatenate([corners, corners + 6], -1).astype(np.float32)
    if name == "MaxRoiPool":
        return _node(name, image(size), np.c_[np.zeros(count), boxes].astype(np.float32), pooled_shape=[7, 7])
    sizes = {"output_height": 7, "output_width": 7, "sampling_ratio": 2}
    return _node(name, image(size), boxes, np.zeros(count, np.int64), **sizes)


def _einsum(equation: str, size: int) -> Node:
    extent = dict(zip("bijklhqd", ((4, 16, 32), *[(16, 32, 64)] * 7), strict=True))
    terms = equation.partition("->")[0].split(",")
    return _node("Einsum", *(floats(*(extent[label][size] for label in term)) for term in terms), equation=equation)


def _fourier(size: int) -> Node:
    return _node("DFT", floats(1, (256, 4096, 16384)[size], 1), axis=1, opset=17)


def _short_time(size: int) -> Node:
    samples = (1600, 16000, 160000)[size]
    window = Const(np.hanning(400).astype(np.float32))
    return _node("STFT", floats(1, samples, 1), scalar(160), window, scalar(400), opset=17)


def _quantized_product(size: int) -> Node:
    rows, columns = ROWS[size] // 2, COLUMNS[size] // 2
    left = integers(rows, columns, below=256, dtype=np.uint8)
    right = Const(integers(columns, columns, below=100, dtype=np.int8))
    steps = scalar(0.02, np.float32), scalar(128, np.uint8)
    return _node("QLinearMatMul", left, *steps, right, scalar(0.01, np.float32), scalar(0, np.int8), *steps)


def _quantized_convolution(size: int) -> Node:
    channels = CHANNELS[size]
    weights = Const(integers(channels, channels, 3, 3, below=100, dtype=np.int8))
    steps = scalar(0.02, np.float32), scalar(128, np.uint8)
    operands = byte_image(size), *steps, weights, scalar(0.01, np.float32), scalar(0, np.int8), *steps
    return _node("QLinearConv", *operands, pads=[1] * 4)


def _quantized_binary(name: str, size: int) -> Node:
    step = scalar(0.02, np.float32), scalar(128, np.uint8)
    return _contrib(name, byte_image(size), *step, byte_image(size), *step, *step)


def _quantized_unary(name: str, size: int, **attributes: Any) -> Node:
    step = scalar(0.02, np.float32), scalar(128, np.uint8)
    return _contrib(name, byte_image(size), *step, *step, **attributes)


def _attention(name: str, size: int, **attributes: Any) -> Node:
    steps, width = (16, 64, 256)[size], (64, 256, 512)[size]
    data = floats(1, steps, width)
    if name == "Attention":
        return _contrib(name, data, Const(floats(width, 3 * width)), Const(floats(3 * width)), num_heads=8)
    if name == "GroupQueryAttention":
        past = [floats(1, 8, 0, width // 8) for _ in "kv"]
        lengths = const(steps - 1, dtype=np.int32), scalar(steps, np.int32)
        return _contrib(name, data, data, data, *past, *lengths, outputs=3, num_heads=8, kv_num_heads=8)
    return _contrib(name, data, floats(1, steps, width), floats(1, steps, width), num_heads=8, **attributes)


def _skipping(name: str, size: int) -> Node:
    rows, columns = ROWS[size], COLUMNS[size]
    data = [floats(1, rows, columns) for _ in range(2)]
    scale = [Const(floats(columns)) for _ in range(1 if "Simplified" in name else 2)]
    return _contrib(name, *data, *scale)


def _packed_bits(size: int) -> Node:
    rows, width = (1, 4, 64)[size], (128, 512, 1024)[size]
    packed = Const(integers(width, width // 32, 16, below=256, dtype=np.uint8))
    scales = Const(floats(width * width // 32, low=0.01, high=0.02))
    return _contrib("MatMulNBits", floats(rows, width), packed, scales, K=width, N=width, bits=4, block_size=32)


def _trees(name: str, size: int, depth: int = 6) -> Node:
    """A forest of full binary trees over 20 features, and its rows; of depth 8 a hundred trees whatever the size."""
    trees, rows, features = (10, 50, 100)[size], (1, 100, 1000)[size], 20
    if depth == 8:
        trees, rows = 100, (1, 100, 10_000)[size]
    inner, total = 2**depth - 1, 2 ** (depth + 1) - 1
    tree_ids, node_ids = np.divmod(np.arange(trees * total), total)
    branch = node_ids < inner
    kind = "class" if name == "TreeEnsembleClassifier" else "target"
    leaves = ~branch
    attributes = {
        "nodes_treeids": tree_ids.tolist(),
        "nodes_nodeids": node_ids.tolist(),
        "nodes_featureids": np.where(branch, _RANDOM.integers(0, features, branch.size), 0).tolist(),
        "nodes_values": np.where(branch, _RANDOM.uniform(-2, 2, branch.size), 0.0).tolist(),
        "nodes_modes": [b"BRANCH_LEQ" if b else b"LEAF" for b in branch],
        "nodes_truenodeids": np.where(branch, 2 * node_ids + 1, 0).tolist(),
        "nodes_falsenodeids": np.where(branch, 2 * node_ids + 2, 0).tolist(),
        f"{kind}_treeids": tree_ids[leaves].tolist(),
        f"{kind}_nodeids": node_ids[leaves].tolist(),
        f"{kind}_ids": _RANDOM.integers(0, 3, int(leaves.sum())).tolist(),
        f"{kind}_weights": _RANDOM.uniform(0, 1, int(leaves.sum())).tolist(),
    }
    owned = {"classlabels_int64s": [0, 1, 2]} if kind == "class" else {"n_targets": 3}
    return _learned(name, floats(rows, features), outputs=2 if kind == "class" else 1, **attributes, **owned)


def _support_vectors(name: str, size: int) -> Node:
    count, features, rows = (20, 100, 500)[size], 16, (1, 50, 500)[size]
    attributes: dict[str, Any] = {
        "kernel_type": "RBF",
        "kernel_params": [0.1, 0.0, 3.0],
        "support_vectors": floats(count * features).tolist(),
        "coefficients": floats(count).tolist(),
        "rho": [0.1],
    }
    if name == "SVMRegressor":
        return _learned(name, floats(rows, features), n_supports=count, **attributes)
    classes = {"classlabels_ints": [0, 1], "vectors_per_class": [count // 2, count - count // 2]}
    return _learned(name, floats(rows, features), outputs=2, **classes, **attributes)


def _linear(name: str, size: int) -> Node:
    features = (10, 50, 100)[size]
    data = floats((1, 100, 1000)[size], features)
    if name == "LinearRegressor":
        return _learned(name, data, coefficients=floats(features).tolist(), intercepts=[0.5], targets=1)
    attributes = {"coefficients": floats(3 * features).tolist(), "intercepts": [0.1, 0.2, 0.3]}
    return _learned(name, data, outputs=2, classlabels_ints=[0, 1, 2], post_transform="SOFTMAX", **attributes)


def _rotary(size: int) -> Node:
    steps = ROWS[size] // 2
    tables = Const(floats(2048, 32)), Const(floats(2048, 32))
    return _node("RotaryEmbedding", floats(1, 8, steps, 64), *tables, np.arange(steps)[None], opset=23)


def _forest(size: int) -> Node:
    """TreeEnsemble: full binary trees of depth 6 over 20 features, and their rows."""
    trees, rows, depth, features = (10, 50, 100)[size], (1, 100, 1000)[size], 6, 20
    inner, ends = 2**depth - 1, 2**depth
    roots = np.arange(trees) * inner
    node = np.arange(inner)
    last = node >= inner // 2
    true, false = (np.where(last, 2 * node + more - inner, 2 * node + more) for more in (1, 2))
    count = trees * inner
    attributes = {
        "tree_roots": roots.tolist(),
        "nodes_featureids": _RANDOM.integers(0, features, count).tolist(),
        "nodes_modes": numpy_helper.from_array(np.zeros(count, np.uint8)),
        "nodes_splits": numpy_helper.from_array(floats(count)),
        "nodes_truenodeids": np.concatenate([true + np.where(last, ends * t, r) for t, r in enumerate(roots)]).tolist(),
        "nodes_falsenodeids": np.concatenate(
            [false + np.where(last, ends * t, r) for t, r in enumerate(roots)]
        ).tolist(),
        "nodes_trueleafs": np.tile(last, trees).astype(int).tolist(),
        "nodes_falseleafs": np.tile(last, trees).astype(int).tolist(),
        "leaf_targetids": _RANDOM.integers(0, 3, trees * ends).tolist(),
        "leaf_weights": numpy_helper.from_array(floats(trees * ends)),
        "n_targets": 3,
        "aggregate_function": 1,
    }
    return _learned("TreeEnsemble", floats(rows, features), opset=5, **attributes)


def _embedded(name: str, size: int) -> Node:
    steps, width = (8, 64, 256)[size], (64, 256, 768)[size]
    words, places, kinds = (count for count in (1000, 512, 2))
    ids = [integers(1, steps, below=below, dtype=np.int32) for below in (words, kinds)]
    if name == "EmbedLayerNormalization":
        tables = [Const(floats(count, width)) for count in (words, places, kinds)]
        return _contrib(name, *ids, *tables, *(Const(floats(width)) for _ in range(2)), None, outputs=2)
    tables = [Const(integers(count, width, below=255, dtype=np.uint8)) for count in (words, places, kinds)]
    tables += [Const(integers(width, below=255, dtype=np.uint8)) for _ in range(2)]
    steps_of = [scalar(0.01, np.float32) for _ in range(5)] + [scalar(128, np.uint8) for _ in range(5)]
    return _contrib(name, *ids, *tables, None, *steps_of, outputs=2)


def _quantized_attention(size: int) -> Node:
    steps, width = (16, 64, 256)[size], (64, 256, 512)[size]
    data = integers(1, steps, width, below=256, dtype=np.uint8)
    weights = Const(integers(width, 3 * width, below=100, dtype=np.int8))
    scales = scalar(0.02, np.float32), scalar(0.01, np.float32)
    zeros = scalar(128, np.uint8), scalar(0, np.int8)
    bias = Const(floats(3 * width))
    return _contrib("QAttention", data, weights, bias, *scales, None, *zeros, num_heads=8)


def _decoded(size: int) -> Node:
    width, past = (64, 256, 512)[size], (16, 64, 512)[size]
    one = [floats(1, 1, width) for _ in range(3)]
    caches = [floats(1, 8, past, width // 8) for _ in range(2)]
    length = np.array([past // 2], np.int32)
    operands = *one, None, None, *caches, length
    return _contrib("DecoderMaskedMultiHeadAttention", *operands, outputs=3, num_heads=8, past_present_share_buffer=1)


def _quantized_recurrent(size: int) -> Node:
    steps, units = (10, 20, 50)[size], (32, 64, 256)[size]
    weights = [Const(integers(1, units, 4 * units, below=100, dtype=np.int8)) for _ in "WR"]
    zeros = [Const(np.zeros((1,), np.int8)) for _ in "WR"]
    scales = [Const(np.full((1,), 0.001, np.float32)) for _ in "WR"]
    operands = floats(steps, 1, units), *weights, None, None, None, None, None, scales[0], zeros[0], scales[1], zeros[1]
    return _contrib("DynamicQuantizeLSTM", *operands, outputs=3, hidden_size=units)


_STEP = scalar(0.02, np.float32), scalar(128, np.uint8)

CASES: dict[str, Case] = {
    **{name: partial(_unary, name, low, high, opset) for name, low, high, opset in _UNARY},
    **{name: partial(_binary, name) for name in _BINARY},
    **{name: partial(_logical, name) for name in ("And", "Or", "Xor")},
    **{name: partial(_bitwise, name) for name in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")},
    **{f"{name}, last axis": partial(_reduction, name, 1) for name in (*_REDUCTIONS, "ReduceSum")},
    **{f"{name}, first axis": partial(_reduction, name, 0) for name in (*_REDUCTIONS, "ReduceSum")},
    "Add, a row": lambda s: _node("Add", matrix(s), floats(COLUMNS[s])),
    "Add, a column": lambda s: _node("Add", matrix(s), floats(ROWS[s], 1)),
    "Softmax, channels": lambda s: _node("Softmax", image(s), axis=1),
    "ArgMax, last axis": lambda s: _node("ArgMax", matrix(s), axis=1),
    "ArgMax, first axis": lambda s: _node("ArgMax", matrix(s), axis=0),
    "ArgMin": lambda s: _node("ArgMin", matrix(s), axis=1),
    "BitShift": lambda s: _node(
        "BitShift",
        integers(ROWS[s], COLUMNS[s], dtype=np.uint32),
        integers(ROWS[s], COLUMNS[s], below=8, dtype=np.uint32),
        direction="LEFT",
    ),
    "BitwiseNot": lambda s: _node("BitwiseNot", integers(ROWS[s], COLUMNS[s], dtype=np.int32)),
    "Not": lambda s: _node("Not", booleans(ROWS[s], COLUMNS[s])),
    "Mod": lambda s: _node("Mod", matrix(s), matrix(s, low=0.5), fmod=1),
    "Mod, int64": lambda s: _node("Mod", integers(ROWS[s], COLUMNS[s]), integers(ROWS[s], COLUMNS[s]) + 1),
    "Div, int32": lambda s: _node(
        "Div",
        integers(ROWS[s], COLUMNS[s], dtype=np.int32),
        integers(ROWS[s], COLUMNS[s], dtype=np.int32) + np.int32(1),
    ),
    "Pow": lambda s: _node("Pow", matrix(s, low=0.5), matrix(s)),
    "Pow, squared": lambda s: _node("Pow", matrix(s), scalar(2.0, np.float32)),
    "PRelu": lambda s: _node("PRelu", matrix(s), Const(floats(COLUMNS[s]))),
    "Clip": lambda s: _node("Clip", matrix(s), scalar(-1.0, np.float32), scalar(1.0, np.float32)),
    "Where": lambda s: _node("Where", booleans(ROWS[s], COLUMNS[s]), matrix(s), matrix(s)),
    "Cast, to int32": lambda s: _node("Cast", matrix(s), to=6),
    "Cast, to float16": lambda s: _node("Cast", matrix(s), to=10),
    "Cast, from uint8": lambda s: _node("Cast", byte_image(s), to=1),
    "CastLike": lambda s: _node("CastLike", matrix(s), const(1, dtype=np.int32)),
    "CumSum, last axis": lambda s: _node("CumSum", matrix(s), scalar(1)),
    "CumSum, first axis": lambda s: _node("CumSum", matrix(s), scalar(0)),
    "Dropout": lambda s: _node("Dropout", matrix(s)),
    "EyeLike": lambda s: _node("EyeLike", matrix(s)),
    "Trilu": lambda s: _node("Trilu", matrix(s)),
    "Det": lambda s: _node("Det", floats((4, 16, 64)[s], 16, 16)),
    "Transpose": lambda s: _node("Transpose", matrix(s)),
    "Transpose, channels last": lambda s: _node("Transpose", image(s), perm=[0, 2, 3, 1]),
    "Transpose, heads": lambda s: _node("Transpose", floats(1, ROWS[s] // 2, 8, COLUMNS[s] // 8), perm=[0, 2, 1, 3]),
    "Concat, first axis": lambda s: _node("Concat", matrix(s), matrix(s), axis=0),
    "Concat, last axis": lambda s: _node("Concat", matrix(s), matrix(s), axis=1),
    "Split, last axis": lambda s: _node("Split", matrix(s), outputs=2, axis=1, num_outputs=2),
    "Slice": lambda s: _node("Slice", matrix(s), const(1), const(-1), const(1)),
    "Slice, steps of two": lambda s: _node("Slice", matrix(s), const(0), const(1 << 30), const(1), const(2)),
    "Slice, backwards": lambda s: _node("Slice", matrix(s), const(-1), const(-(1 << 30)), const(1), const(-1)),
    "Pad, constant": lambda s: _node("Pad", image(s), const(0, 0, 1, 1, 0, 0, 1, 1)),
    "Pad, reflect": lambda s: _node("Pad", image(s), const(0, 0, 2, 2, 0, 0, 2, 2), mode="reflect"),
    "Pad, edge": lambda s: _node("Pad", image(s), const(0, 0, 2, 2, 0, 0, 2, 2), mode="edge"),
    "CenterCropPad": lambda s: _node("CenterCropPad", matrix(s), const(ROWS[s] // 2, COLUMNS[s] + 8)),
    "Expand": lambda s: _node("Expand", floats(1, COLUMNS[s]), const(ROWS[s], COLUMNS[s])),
    "Tile": lambda s: _node("Tile", matrix(s), const(2, 3)),
    "Reshape": lambda s: _node("Reshape", matrix(s), const(-1)),
    "Squeeze": lambda s: _node("Squeeze", floats(1, ROWS[s], COLUMNS[s]), const(0)),
    "Unsqueeze": lambda s: _node("Unsqueeze", matrix(s), const(0)),
    "Shape": lambda s: _node("Shape", matrix(s)),
    "Size": lambda s: _node("Size", matrix(s)),
    "ConstantOfShape": lambda s: _node("ConstantOfShape", np.array([ROWS[s], COLUMNS[s]], np.int64)),
    "Range": lambda s: _node(
        "Range", scalar(0.0, np.float32), np.array(ROWS[s] * 100, np.float32), scalar(1.0, np.float32)
    ),
    "DepthToSpace": lambda s: _node("DepthToSpace", image(s), blocksize=2),
    "SpaceToDepth": lambda s: _node("SpaceToDepth", image(s), blocksize=2),
    "Gather, rows": lambda s: _node("Gather", matrix(s), integers(ROWS[s], below=ROWS[s])),
    "Gather, columns": lambda s: _node("Gather", matrix(s), integers(COLUMNS[s], below=COLUMNS[s]), axis=1),
    "GatherElements": lambda s: _node("GatherElements", matrix(s), integers(ROWS[s], COLUMNS[s], below=ROWS[s])),
    "GatherND": lambda s: _node("GatherND", matrix(s), integers(ROWS[s], 2, below=ROWS[s])),
    "ScatterElements": partial(_scatter, "ScatterElements"),
    "ScatterElements, add": partial(_scatter, "ScatterElements", reduction="add"),
    "ScatterND": _scatter_nd,
    "OneHot": lambda s: _node(
        "OneHot", integers(ROWS[s], below=COLUMNS[s]), scalar(COLUMNS[s]), Const(np.array([0, 1], np.float32))
    ),
    "ReverseSequence": lambda s: _node(
        "ReverseSequence", floats(ROWS[s], 8, COLUMNS[s] // 8), integers(8, below=ROWS[s]) + 1
    ),
    "Compress": lambda s: _node("Compress", matrix(s), booleans(ROWS[s]), axis=0),
    "NonZero": lambda s: _node("NonZero", booleans(ROWS[s], COLUMNS[s])),
    "Unique": lambda s: _node("Unique", integers(ROWS[s] * 64, below=500), outputs=4),
    "TopK, 10": partial(_top_k, 10),
    "TopK, 100": partial(_top_k, 100),
    "TopK, 1000": partial(_top_k, 1000),
    "TfIdfVectorizer": lambda s: _node(
        "TfIdfVectorizer",
        integers(ROWS[s], 64, below=16),
        mode="TF",
        min_gram_length=1,
        max_gram_length=2,
        max_skip_count=0,
        ngram_counts=[0, 4],
        ngram_indexes=list(range(7)),
        pool_int64s=[2, 3, 5, 4, 5, 6, 7, 8, 6, 7],
    ),
    "MatMul": lambda s: _node(
        "MatMul", floats((16, 128, 512)[s], (64, 256, 512)[s]), floats((64, 256, 512)[s], (64, 256, 512)[s])
    ),
    "MatMul, weights": lambda s: _node("MatMul", matrix(s), Const(floats(COLUMNS[s], COLUMNS[s] // 2))),
    "MatMul, one row": lambda s: _node("MatMul", floats(1, COLUMNS[s]), Const(floats(COLUMNS[s], COLUMNS[s]))),
    "MatMul, batches": lambda s: _node("MatMul", floats(8, (8, 32, 128)[s], 64), floats(8, 64, (8, 32, 128)[s])),
    "MatMul, int32": lambda s: _node(
        "MatMul", integers((8, 64, 256)[s], 64, dtype=np.int32), integers(64, (8, 64, 256)[s], dtype=np.int32)
    ),
    "MatMulInteger": lambda s: _node(
        "MatMulInteger",
        integers(ROWS[s] // 2, COLUMNS[s] // 2, dtype=np.uint8),
        Const(integers(COLUMNS[s] // 2, COLUMNS[s] // 2, dtype=np.int8)),
    ),
    "Gemm": lambda s: _node(
        "Gemm", matrix(s), Const(floats(COLUMNS[s], COLUMNS[s] // 2)), Const(floats(COLUMNS[s] // 2))
    ),
    "Gemm, transposed": lambda s: _node("Gemm", matrix(s), Const(floats(COLUMNS[s] // 2, COLUMNS[s])), transB=1),
    "QLinearMatMul": _quantized_product,
    "QLinearConv": _quantized_convolution,
    "ConvInteger": lambda s: _node(
        "ConvInteger", byte_image(s), Const(integers(CHANNELS[s], CHANNELS[s], 3, 3, dtype=np.uint8))
    ),
    "Conv, 3x3": lambda s: _convolution(s, 1, 3),
    "Conv, 1x1": lambda s: _convolution(s, 1, 1),
    "Conv, depthwise": lambda s: _convolution(s, CHANNELS[s], 3),
    "Conv, groups": lambda s: _convolution(s, 4, 3),
    "Conv, 1-D": lambda s: _node("Conv", floats(1, 16, (64, 512, 8192)[s]), Const(floats(16, 16, 5)), pads=[2, 2]),
    "Conv, 3-D": lambda s: _node(
        "Conv", floats(1, 8, *[(6, 12, 24)[s]] * 3), Const(floats(8, 8, 3, 3, 3)), pads=[1] * 6
    ),
    "ConvTranspose, 1-D": lambda s: _transposed(s, 1, 4),
    "ConvTranspose, 2x2": lambda s: _transposed(s, 2, 2),
    "ConvTranspose, 3x3": lambda s: _transposed(s, 2, 3),
    "ConvTranspose, 4x4": lambda s: _transposed(s, 2, 4),
    "ConvTranspose, 3x3x3": lambda s: _transposed(s, 3, 3),
    "ConvTranspose, 4x4x4": lambda s: _transposed(s, 3, 4),
    "DeformConv": _deformed,
    "Col2Im": _columns,
    "MaxUnpool": _unpooled,
    "MaxPool": partial(_pool, "MaxPool"),
    "MaxPool, with indices": lambda s: Node(
        "MaxPool", (image(s),), 2, 18, "", {"kernel_shape": [2, 2], "strides": [2, 2]}
    ),
    "AveragePool": partial(_pool, "AveragePool"),
    "LpPool": partial(_pool, "LpPool"),
    "GlobalAveragePool": lambda s: _node("GlobalAveragePool", image(s)),
    "GlobalMaxPool": lambda s: _node("GlobalMaxPool", image(s)),
    "GlobalLpPool": lambda s: _node("GlobalLpPool", image(s)),
    "RoiAlign": partial(_regions, "RoiAlign"),
    "MaxRoiPool": partial(_regions, "MaxRoiPool"),
    "GridSample": lambda s: _node("GridSample", image(s), floats(1, PIXELS[s], PIXELS[s], 2, low=-1, high=1)),
    "GridSample, cubic": lambda s: _node(
        "GridSample", image(s), floats(1, PIXELS[s], PIXELS[s], 2, low=-1, high=1), mode="bicubic", opset=16
    ),
    "AffineGrid": lambda s: _node("AffineGrid", floats(1, 2, 3), const(1, 1, PIXELS[s], PIXELS[s]), opset=20),
    "Resize, nearest x2": partial(_resize, "nearest", 2.0),
    "Resize, linear x2": partial(_resize, "linear", 2.0),
    "Resize, cubic x2": partial(_resize, "cubic", 2.0),
    "Resize, linear x0.5": partial(_resize, "linear", 0.5),
    "Upsample": lambda s: _node("Upsample", image(s), const(1, 1, 2, 2, dtype=np.float32), opset=9, mode="nearest"),
    "BatchNormalization": lambda s: _node(
        "BatchNormalization", image(s), *(Const(floats(CHANNELS[s], low=0.5)) for _ in range(4))
    ),
    "InstanceNormalization": lambda s: _node(
        "InstanceNormalization", image(s), *(Const(floats(CHANNELS[s])) for _ in range(2))
    ),
    "GroupNormalization": lambda s: _node(
        "GroupNormalization", image(s), *(Const(floats(CHANNELS[s])) for _ in range(2)), num_groups=4, opset=21
    ),
    "LayerNormalization": lambda s: _node(
        "LayerNormalization", matrix(s), *(Const(floats(COLUMNS[s])) for _ in range(2))
    ),
    "MeanVarianceNormalization": lambda s: _node("MeanVarianceNormalization", image(s)),
    "LRN": lambda s: _node("LRN", image(s), size=5),
    "DequantizeLinear": lambda s: _node(
        "DequantizeLinear", byte_image(s), scalar(0.02, np.float32), scalar(128, np.uint8)
    ),
    "QuantizeLinear": lambda s: _node("QuantizeLinear", image(s), scalar(0.02, np.float32), scalar(128, np.uint8)),
    "DynamicQuantizeLinear": lambda s: _node("DynamicQuantizeLinear", matrix(s), outputs=3),
    "LSTM": partial(_recurrent, "LSTM", 4, 3),
    "GRU": partial(_recurrent, "GRU", 3, 2),
    "RNN": partial(_recurrent, "RNN", 1, 2),
    "Einsum, ij,jk->ik": partial(_einsum, "ij,jk->ik"),
    "Einsum, bij,bjk->bik": partial(_einsum, "bij,bjk->bik"),
    "Einsum, bij,bkj->bik": partial(_einsum, "bij,bkj->bik"),
    "Einsum, bi,ij,bj->b": partial(_einsum, "bi,ij,bj->b"),
    "Einsum, ij,jk,kl->il": partial(_einsum, "ij,jk,kl->il"),
    "Einsum, ij->ji": partial(_einsum, "ij->ji"),
    "DFT": _fourier,
    "STFT": _short_time,
    "MelWeightMatrix": lambda s: _node(
        "MelWeightMatrix",
        *(np.array(v, np.int64) for v in ((20, 80, 128)[s], 512, 16000)),
        *(np.array(v, np.float32) for v in (0, 8000)),
        opset=17,
    ),
    "HannWindow": lambda s: _node("HannWindow", np.array((64, 1024, 65536)[s], np.int64), opset=17),
    "HammingWindow": lambda s: _node("HammingWindow", np.array((64, 1024, 65536)[s], np.int64), opset=17),
    "BlackmanWindow": lambda s: _node("BlackmanWindow", np.array((64, 1024, 65536)[s], np.int64), opset=17),
    "NonMaxSuppression": _boxes,
    "NegativeLogLikelihoodLoss": lambda s: _node(
        "NegativeLogLikelihoodLoss", matrix(s), integers(ROWS[s], below=COLUMNS[s])
    ),
    "SoftmaxCrossEntropyLoss": lambda s: _node(
        "SoftmaxCrossEntropyLoss", matrix(s), integers(ROWS[s], below=COLUMNS[s])
    ),
    "RandomNormalLike": lambda s: _node("RandomNormalLike", matrix(s)),
    "RandomUniformLike": lambda s: _node("RandomUniformLike", matrix(s)),
    "Bernoulli": lambda s: _node("Bernoulli", matrix(s, low=0.0, high=1.0)),
    "Multinomial": lambda s: _node("Multinomial", matrix(s), sample_size=10),
    "ArrayFeatureExtractor": lambda s: _learned("ArrayFeatureExtractor", matrix(s), const(1, 3, 5)),
    "Binarizer": lambda s: _learned("Binarizer", matrix(s), threshold=0.5),
    "FeatureVectorizer": lambda s: _learned(
        "FeatureVectorizer", matrix(s), matrix(s), inputdimensions=[COLUMNS[s]] * 2
    ),
    "Imputer": lambda s: _learned("Imputer", matrix(s), imputed_value_floats=[1.0], replaced_value_float=float("nan")),
    "LabelEncoder": lambda s: _learned(
        "LabelEncoder",
        integers(ROWS[s] * 16),
        opset=2,
        keys_int64s=list(range(100)),
        values_int64s=list(range(100, 0, -1)),
    ),
    "Normalizer": lambda s: _learned("Normalizer", matrix(s), norm="L2"),
    "OneHotEncoder": lambda s: _learned("OneHotEncoder", integers(ROWS[s], below=50), cats_int64s=list(range(50))),
    "Scaler": lambda s: _learned(
        "Scaler", matrix(s), offset=floats(COLUMNS[s]).tolist(), scale=floats(COLUMNS[s]).tolist()
    ),
    "LinearClassifier": partial(_linear, "LinearClassifier"),
    "LinearRegressor": partial(_linear, "LinearRegressor"),
    "SVMClassifier": partial(_support_vectors, "SVMClassifier"),
    "SVMRegressor": partial(_support_vectors, "SVMRegressor"),
    "TreeEnsembleClassifier": partial(_trees, "TreeEnsembleClassifier"),
    "TreeEnsembleRegressor": partial(_trees, "TreeEnsembleRegressor"),
    "TreeEnsembleClassifier, depth 8": partial(_trees, "TreeEnsembleClassifier", depth=8),
    "TreeEnsembleRegressor, depth 8": partial(_trees, "TreeEnsembleRegressor", depth=8),
    "com.microsoft.Attention": partial(_attention, "Attention"),
    "com.microsoft.MultiHeadAttention": partial(_attention, "MultiHeadAttention"),
    "com.microsoft.GroupQueryAttention": partial(_attention, "GroupQueryAttention"),
    "com.microsoft.SkipLayerNormalization": partial(_skipping, "SkipLayerNormalization"),
    "com.microsoft.SkipSimplifiedLayerNormalization": partial(_skipping, "SkipSimplifiedLayerNormalization"),
    "com.microsoft.MatMulNBits": _packed_bits,
    "com.microsoft.BiasGelu": lambda s: _contrib("BiasGelu", matrix(s), Const(floats(COLUMNS[s]))),
    "com.microsoft.FastGelu": lambda s: _contrib("FastGelu", matrix(s)),
    "com.microsoft.Gelu": lambda s: _contrib("Gelu", matrix(s)),
    "com.microsoft.QuickGelu": lambda s: _contrib("QuickGelu", matrix(s)),
    "com.microsoft.CDist": lambda s: _contrib(
        "CDist", floats(ROWS[s], 64), floats(ROWS[s] // 2, 64), metric="sqeuclidean"
    ),
    "com.microsoft.FusedMatMul": lambda s: _contrib(
        "FusedMatMul", matrix(s), Const(floats(COLUMNS[s] // 2, COLUMNS[s])), transB=1
    ),
    "com.microsoft.FusedGemm": lambda s: _contrib(
        "FusedGemm", matrix(s), Const(floats(COLUMNS[s], 64)), Const(floats(64)), activation="Relu"
    ),
    "com.microsoft.FusedConv": lambda s: _contrib(
        "FusedConv", image(s), Const(floats(CHANNELS[s], CHANNELS[s], 3, 3)), activation="Relu", pads=[1] * 4
    ),
    "com.microsoft.DynamicQuantizeMatMul": lambda s: _contrib(
        "DynamicQuantizeMatMul",
        matrix(s),
        Const(integers(COLUMNS[s], COLUMNS[s] // 2, dtype=np.int8)),
        scalar(0.01, np.float32),
        scalar(0, np.int8),
    ),
    "com.microsoft.QLinearAdd": partial(_quantized_binary, "QLinearAdd"),
    "com.microsoft.QLinearMul": partial(_quantized_binary, "QLinearMul"),
    "com.microsoft.QLinearSigmoid": partial(_quantized_unary, "QLinearSigmoid"),
    "com.microsoft.QLinearLeakyRelu": partial(_quantized_unary, "QLinearLeakyRelu"),
    "com.microsoft.QLinearGlobalAveragePool": partial(_quantized_unary, "QLinearGlobalAveragePool"),
    "com.microsoft.QLinearAveragePool": partial(
        _quantized_unary, "QLinearAveragePool", kernel_shape=[2, 2], strides=[2, 2]
    ),
    "com.microsoft.QLinearSoftmax": partial(_quantized_unary, "QLinearSoftmax", axis=1, opset=13),
    "com.microsoft.RotaryEmbedding": lambda s: _contrib(
        "RotaryEmbedding",
        floats(1, 8, ROWS[s] // 2, 64),
        np.zeros(1, np.int64),
        Const(floats(2048, 32)),
        Const(floats(2048, 32)),
    ),
    "com.microsoft.Inverse": lambda s: _contrib("Inverse", floats((4, 16, 64)[s], 16, 16)),
    "com.microsoft.Trilu": lambda s: _contrib("Trilu", matrix(s)),
    "com.microsoft.Unique": lambda s: _contrib(
        "Unique", integers(ROWS[s] * 64, below=500).astype(np.float32), outputs=3
    ),
    "Attention": lambda s: _node(
        "Attention", *(floats(1, 8, (16, 64, 256)[s], (8, 32, 64)[s]) for _ in range(3)), opset=23
    ),
    "BitCast": lambda s: _node("BitCast", matrix(s), opset=26, to=6),
    "CumProd": lambda s: _node("CumProd", matrix(s, low=0.9, high=1.1), scalar(1), opset=26),
    "RMSNormalization": lambda s: _node("RMSNormalization", matrix(s), Const(floats(COLUMNS[s])), opset=23),
    "RotaryEmbedding": _rotary,
    "Scatter": partial(_scatter, "Scatter", opset=9),
    "Swish": lambda s: _node("Swish", matrix(s), opset=24),
    "TensorScatter": lambda s: _node(
        "TensorScatter", floats(1, 8, ROWS[s], 64), floats(1, 8, 1, 64), const(3), opset=24
    ),
    "RandomNormal": lambda s: _node("RandomNormal", shape=[ROWS[s], COLUMNS[s]]),
    "RandomUniform": lambda s: _node("RandomUniform", shape=[ROWS[s], COLUMNS[s]]),
    "TreeEnsemble": _forest,
    "com.microsoft.BiasAdd": lambda s: _contrib(
        "BiasAdd", floats(1, 16 * ROWS[s], 320), Const(floats(320)), floats(1, 16 * ROWS[s], 320)
    ),
    "com.microsoft.BiasSoftmax": lambda s: _contrib(
        "BiasSoftmax", matrix(s), floats(1, COLUMNS[s]), axis=1, is_inner_broadcast=0
    ),
    "com.microsoft.BiasSplitGelu": lambda s: _contrib("BiasSplitGelu", floats(1, ROWS[s], 2560), Const(floats(2560))),
    "com.microsoft.DecoderMaskedMultiHeadAttention": _decoded,
    "com.microsoft.DequantizeLinear": lambda s: _contrib("DequantizeLinear", byte_image(s), *_STEP),
    "com.microsoft.DynamicQuantizeLSTM": _quantized_recurrent,
    "com.microsoft.EmbedLayerNormalization": partial(_embedded, "EmbedLayerNormalization"),
    "com.microsoft.QEmbedLayerNormalization": partial(_embedded, "QEmbedLayerNormalization"),
    "com.microsoft.ExpandDims": lambda s: _contrib("ExpandDims", matrix(s), scalar(0, np.int32)),
    "com.microsoft.GatedRelativePositionBias": lambda s: _contrib(
        "GatedRelativePositionBias",
        floats(1, (16, 64, 256)[s], 64),
        Const(floats(64)),
        floats(1, 8, (16, 64, 256)[s], (16, 64, 256)[s]),
        Const(floats(8, 8)),
        Const(floats(8)),
        Const(floats(1, 8, 1, 1)),
        num_heads=8,
    ),
    "com.microsoft.GatherBlockQuantized": lambda s: _contrib(
        "GatherBlockQuantized",
        Const(integers(1000, COLUMNS[s], below=256, dtype=np.uint8)),
        integers(ROWS[s], below=1000),
        Const(floats(1000, COLUMNS[s] // 32)),
        bits=8,
        block_size=32,
        quantize_axis=1,
    ),
    "com.microsoft.GatherND": lambda s: _contrib("GatherND", matrix(s), integers(ROWS[s], 2, below=ROWS[s])),
    "com.microsoft.GemmFastGelu": lambda s: _contrib(
        "GemmFastGelu", matrix(s), Const(floats(COLUMNS[s], 64)), Const(floats(64))
    ),
    "com.microsoft.GridSample": lambda s: _contrib(
        "GridSample", image(s), floats(1, PIXELS[s], PIXELS[s], 2, low=-1, high=1)
    ),
    "com.microsoft.GroupNorm": lambda s: _contrib(
        "GroupNorm", floats(1, PIXELS[s], PIXELS[s], 64), *(Const(floats(64)) for _ in range(2)), activation=0, groups=8
    ),
    "com.microsoft.LayerNormalization": lambda s: _contrib(
        "LayerNormalization", matrix(s), *(Const(floats(COLUMNS[s])) for _ in range(2))
    ),
    "com.microsoft.MatMulIntegerToFloat": lambda s: _contrib(
        "MatMulIntegerToFloat",
        integers(ROWS[s], COLUMNS[s], below=256, dtype=np.uint8),
        Const(integers(COLUMNS[s], COLUMNS[s] // 2, dtype=np.int8)),
        scalar(0.02, np.float32),
        scalar(0.01, np.float32),
        scalar(128, np.uint8),
        scalar(0, np.int8),
    ),
    "com.microsoft.MulInteger": lambda s: _contrib(
        "MulInteger", byte_image(s), scalar(3, np.uint8), byte_image(s), scalar(5, np.uint8)
    ),
    "com.microsoft.NhwcConv": lambda s: _contrib(
        "NhwcConv", floats(1, PIXELS[s], PIXELS[s], CHANNELS[s]), Const(floats(CHANNELS[s], 3, 3, CHANNELS[s]))
    ),
    "com.microsoft.NhwcMaxPool": lambda s: _contrib(
        "NhwcMaxPool",
        integers(1, PIXELS[s], PIXELS[s], CHANNELS[s], below=256, dtype=np.uint8),
        kernel_shape=[2, 2],
        strides=[2, 2],
    ),
    "com.microsoft.Pad": lambda s: _contrib("Pad", image(s), const(0, 0, 1, 1, 0, 0, 1, 1)),
    "com.microsoft.QAttention": _quantized_attention,
    "com.microsoft.QGemm": lambda s: _contrib(
        "QGemm",
        integers(ROWS[s], COLUMNS[s], below=256, dtype=np.uint8),
        *_STEP,
        Const(integers(COLUMNS[s], COLUMNS[s] // 2, dtype=np.int8)),
        scalar(0.01, np.float32),
        scalar(0, np.int8),
        None,
        *_STEP,
    ),
    "com.microsoft.QLinearConcat": lambda s: _contrib(
        "QLinearConcat", *_STEP, byte_image(s), *_STEP, byte_image(s), scalar(0.03, np.float32), _STEP[1], axis=1
    ),
    "com.microsoft.QLinearConcat, one scale": lambda s: _contrib(
        "QLinearConcat", *_STEP, byte_image(s), *_STEP, byte_image(s), *_STEP, axis=1
    ),
    "com.microsoft.QLinearConv": lambda s: _contrib(
        "QLinearConv",
        byte_image(s),
        *_STEP,
        Const(integers(CHANNELS[s], CHANNELS[s], 3, 3, below=100, dtype=np.int8)),
        scalar(0.01, np.float32),
        scalar(0, np.int8),
        *_STEP,
    ),
    "com.microsoft.QLinearReduceMean": lambda s: _contrib(
        "QLinearReduceMean", byte_image(s), *_STEP, *_STEP, axes=[2, 3], keepdims=1
    ),
    "com.microsoft.QLinearWhere": lambda s: _contrib(
        "QLinearWhere",
        booleans(1, CHANNELS[s], PIXELS[s], PIXELS[s]),
        byte_image(s),
        *_STEP,
        byte_image(s),
        *_STEP,
        *_STEP,
    ),
    "com.microsoft.QuantizeLinear": lambda s: _contrib("QuantizeLinear", image(s), *_STEP),
    "com.microsoft.Range": lambda s: _contrib(
        "Range", scalar(0.0, np.float32), np.array(ROWS[s] * 100, np.float32), scalar(1.0, np.float32)
    ),
    "com.microsoft.RelativePositionBias": lambda s: _contrib(
        "RelativePositionBias",
        Const(floats(32, 8)),
        np.array((16, 64, 256)[s], np.int64),
        np.array((16, 64, 256)[s], np.int64),
        max_distance=128,
    ),
    "com.microsoft.SimplifiedLayerNormalization": lambda s: _contrib(
        "SimplifiedLayerNormalization", matrix(s), Const(floats(COLUMNS[s]))
    ),
    "com.microsoft.SkipGroupNorm": lambda s: _contrib(
        "SkipGroupNorm",
        floats(1, PIXELS[s], PIXELS[s], 64),
        *(Const(floats(64)) for _ in range(2)),
        floats(1, PIXELS[s], PIXELS[s], 64),
        activation=0,
        groups=8,
    ),
    "com.microsoft.TorchEmbedding": lambda s: _contrib(
        "TorchEmbedding", Const(floats(1000, 64)), integers(ROWS[s], below=1000)
    ),
    "com.microsoft.TransposeMatMul": lambda s: _contrib(
        "TransposeMatMul", matrix(s), Const(floats(COLUMNS[s] // 2, COLUMNS[s])), transB=1
    ),
}
