"""Translations of reductions and normalizations."""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.first_tier.call_builder import ShapedValue
from landbridge.first_tier.not_taken import NotTakenError
from landbridge.first_tier.operators.request import Request, translates

_REDUCTIONS = (
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin"),
    *("ReduceProd", "ReduceSum", "ReduceSumSquare"),
)


@translates(*_REDUCTIONS)
def reduction(r: Request) -> Sequence[ShapedValue]:
    """Translates reductions along axes."""
    x, rank = r.input(0), len(r.input(0).shape)
    if r.node.op_type not in ("ReduceMax", "ReduceMin", "ReduceSum", "ReduceProd") or x.dtype == "float16":
        r.floats(x)
    axes, keeps_all = r.integers("axes", 1), r.attribute("noop_with_empty_axes", 0)
    if not axes:
        axes = [] if keeps_all else list(range(rank))
    along = sorted({r.axis(axis, rank) for axis in axes})
    if 0 in x.shape or (not along and r.node.op_type in ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceSumSquare")):
        raise NotTakenError(f"{r.node.op_type} of no elements, or along no axes")
    keeps = r.attribute("keepdims", 1)
    shape = tuple(1 if axis in along else e for axis, e in enumerate(x.shape) if keeps or axis not in along)
    return r.call(r.node.op_type, [x], [(shape, x.dtype)], {"axes": along})


@translates("ArgMax", "ArgMin")
def position(r: Request) -> Sequence[ShapedValue]:
    """Translates ArgMax and ArgMin."""
    x = r.input(0)
    axis = r.axis(r.attribute("axis", 0), len(x.shape))
    if 0 in x.shape:
        raise NotTakenError("an extreme of no elements")
    rest = (1,) if r.attribute("keepdims", 1) else ()
    shape = (*x.shape[:axis], *rest, *x.shape[axis + 1 :])
    last = r.attribute("select_last_index", 0)
    return r.call(r.node.op_type, [x], [(shape, "int64")], {"axis": axis, "last": last})


@translates("CumSum")
def running_sum(r: Request) -> Sequence[ShapedValue]:
    """Translates CumSum."""
    x = r.input(0)
    axis = r.axis(int(r.known(1).reshape(())), len(x.shape))
    if 0 in x.shape:
        raise NotTakenError("CumSum of no elements")
    options = {name: r.attribute(name, 0) for name in ("exclusive", "reverse")}
    return r.call("CumSum", [x], [(x.shape, x.dtype)], options | {"axis": axis})


@translates("TopK")
def top_k(r: Request) -> Sequence[ShapedValue]:
    """Translates TopK."""
    x = r.input(0)
    axis = r.axis(r.attribute("axis", -1), len(x.shape))
    count = int(r.known(1).reshape(-1)[0]) if r.optional(1) is not None else r.attribute("k", 0)
    if not 0 <= count <= x.shape[axis]:
        raise NotTakenError("TopK of more elements than there are")
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    types = [(shape, x.dtype), (shape, "int64")]
    return r.call("TopK", [x], types, {"axis": axis, "largest": r.attribute("largest", 1)})


@translates("Softmax", "LogSoftmax")
def softmax(r: Request) -> Sequence[ShapedValue]:
    """Translates Softmax; before opset 13 along all axes from one on."""
    x, rank = r.input(0), len(r.input(0).shape)
    axis = r.axis(r.attribute("axis", -1 if r.opset >= 13 else 1), rank)
    if 0 in x.shape or not rank:
        raise NotTakenError("Softmax of no elements")
    axes = [axis] if r.opset >= 13 else list(range(axis, rank))
    return r.call(r.node.op_type, [x], [(x.shape, r.floats(x))], {"axes": axes}, overwrites=True)


@translates("BatchNormalization")
def batch_normalization(r: Request) -> Sequence[ShapedValue]:
    """Translates BatchNormalization of inference."""
    operands = [r.input(number) for number in range(5)]
    x = operands[0]
    r.ignore("momentum")
    if r.attribute("training_mode", 0) or r.attribute("spatial", 1) != 1 or any(r.used[1:]) or len(x.shape) < 2:
        raise NotTakenError("BatchNormalization of other forms")
    epsilon = r.attribute("epsilon", 1e-5)
    types = [(x.shape, r.floats(*operands))]
    return r.call("BatchNormalization", operands, types, {"epsilon": epsilon}, overwrites=True)


@translates("InstanceNormalization")
def instance_normalization(r: Request) -> Sequence[ShapedValue]:
    """Translates InstanceNormalization."""
    operands = [r.input(number) for number in range(3)]
    x = operands[0]
    if len(x.shape) < 3 or 0 in x.shape:
        raise NotTakenError("InstanceNormalization of no elements")
    epsilon = r.attribute("epsilon", 1e-5)
    types = [(x.shape, r.floats(*operands))]
    return r.call("InstanceNormalization", operands, types, {"epsilon": epsilon}, overwrites=True)


@translates("LayerNormalization")
def layer_normalization(r: Request) -> Sequence[ShapedValue]:
    """Translates LayerNormalization without its statistics."""
    x, scale, bias = r.input(0), r.input(1), r.optional(2)
    if any(r.used[1:]) or r.attribute("stash_type", 1) != 1 or 0 in x.shape:
        raise NotTakenError("statistics of LayerNormalization")
    axis, epsilon = r.axis(r.attribute("axis", -1), len(x.shape)), r.attribute("epsilon", 1e-5)
    types = [(x.shape, r.floats(x, scale, bias))]
    return r.call("LayerNormalization", [x, scale, bias], types, {"axis": axis, "epsilon": epsilon}, overwrites=True)


@translates("RMSNormalization")
def rms_normalization(r: Request) -> Sequence[ShapedValue]:
    """Translates RMSNormalization."""
    x, scale = r.input(0), r.input(1)
    if r.attribute("stash_type", 1) != 1 or 0 in x.shape:
        raise NotTakenError("RMSNormalization of other forms")
    axis, epsilon = r.axis(r.attribute("axis", -1), len(x.shape)), r.attribute("epsilon", 1e-5)
    return r.call(
        "RMSNormalization",
        [x, scale],
        [(x.shape, r.floats(x, scale))],
        {"axis": axis, "epsilon": epsilon},
        overwrites=True,
    )


@translates("LRN")
def local_response(r: Request) -> Sequence[ShapedValue]:
    """Translates LRN."""
    x, size = r.input(0), r.attribute("size", 1)
    if size < 1 or len(x.shape) < 2:
        raise NotTakenError(f"LRN of {size} channels, of shape {x.shape}")
    options = {"alpha": r.attribute("alpha", 1e-4), "beta": r.attribute("beta", 0.75), "bias": r.attribute("bias", 1.0)}
    return r.call("LRN", [x], [(x.shape, r.floats(x))], options | {"size": size}, overwrites=True)
