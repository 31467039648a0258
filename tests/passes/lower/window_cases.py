"""Random nodes with windows, as models: convolutions, transposed ones and pools of every geometry."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

Array = np.ndarray[Any, Any]
OPERATORS = ("Conv", "ConvTranspose", "MaxPool", "AveragePool", "LpPool")
#: Extents of a last axis, of the input or the output: each side of every power of two that a vector may have.
_WIDTHS = (1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64)
_TYPES = {"float32": onnx.TensorProto.FLOAT, "float64": onnx.TensorProto.DOUBLE}


@dataclass(frozen=True)
class WindowCase:
    """One node: its model, and its inputs by name; and onnxruntime's result, in float32."""

    model: onnx.ModelProto
    feeds: dict[str, Array]
    wanted: Array


def window_case(seed: int) -> WindowCase:
    """Case ``seed``, of which the same is made every time."""
    r = Random(seed)
    operator = r.choice(("Conv", "Conv", "Conv", *OPERATORS))
    while True:
        made = _node(r, operator)
        if made is not None:
            return made


def _node(r: Random, operator: str) -> WindowCase | None:
    rank = r.choice((1, 2, 2, 2, 3))
    dtype = "float64" if r.random() < 0.1 and operator == "Conv" else "float32"
    spatial = [r.choice((1, 2, 3, 5, 7, 8, 13)) for _ in range(rank - 1)] + [r.choice(_WIDTHS)]
    kernel = [r.choice((1, 1, 2, 3, 3, 4, 5, 7)) for _ in range(rank)]
    attributes: dict[str, Any] = {"kernel_shape": kernel}
    stride = [r.choice((1, 1, 1, 2, 2, 3)) for _ in range(rank)]
    dilation = [r.choice((1, 1, 1, 2, 3)) for _ in range(rank)]
    if any(s > 1 for s in stride) or r.random() < 0.5:
        attributes["strides"] = stride
    if any(d > 1 for d in dilation):
        attributes["dilations"] = dilation
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    _pads(r, operator, attributes, reach)
    pads = attributes.get("pads", [0] * (2 * rank))
    if operator != "ConvTranspose" and r.random() < 0.6:  # the output has such a width, rather than the input
        spatial[-1] = max((spatial[-1] - 1) * stride[-1] + reach[-1] - pads[rank - 1] - pads[-1], 1)
    padded = [e + a + b for e, a, b in zip(spatial, pads[:rank], pads[rank:], strict=True)]
    if operator != "ConvTranspose" and any(e < k for e, k in zip(padded, reach, strict=True)):
        return None  # no window fits
    group, per_group = r.choice(((1, r.randint(1, 16)), (1, r.choice((1, 3, 8, 16))), (r.randint(2, 6), 1), (2, 3)))
    channels, batch = group * per_group, r.choice((1, 1, 1, 2, 3))
    rng = np.random.default_rng(r.randrange(1 << 30))
    arrays = {"x": rng.normal(size=(batch, channels, *spatial))}
    if operator.startswith("Conv"):
        outputs = group * r.choice((1, 1, 2, 3, 4, 8, 16)) if group > 1 else r.randint(1, 16)
        attributes["group"] = group
        if operator == "Conv":
            arrays["w"] = rng.normal(size=(outputs, per_group, *kernel))
        else:
            arrays["w"] = rng.normal(size=(channels, outputs // group, *kernel))
        if r.random() < 0.4:
            arrays["b"] = rng.normal(size=(outputs,))
    elif operator == "LpPool":
        attributes["p"] = r.choice((1, 2))
    elif operator == "AveragePool":
        attributes["count_include_pad"] = r.randint(0, 1)
    if operator == "ConvTranspose":
        _transposed(r, attributes, spatial, stride, reach)
    return _case(r, operator, attributes, arrays, dtype)


def _pads(r: Random, operator: str, attributes: dict[str, Any], reach: list[int]) -> None:
    """Padding of every kind. That of a pool is smaller than its window, as onnxruntime wants it."""
    rank, kind = (
        len(reach),
        r.choice(("none", "same", "each", "each", "each", "one axis", "one axis", "one side", "auto")),
    )
    most = [e + 2 if operator == "Conv" else e - 1 for e in reach]
    if operator != "ConvTranspose" and operator.endswith("Pool"):
        most = [min(m, k - 1) for m, k in zip(most, attributes["kernel_shape"], strict=True)]
    if kind == "auto":
        dilated = "dilations" in attributes  # which onnxruntime has no SAME for
        # Nor does it have it for a transposed window smaller than its stride: the result is not that many strides then.
        small = operator == "ConvTranspose" and any(
            e < s for e, s in zip(reach, attributes.get("strides", reach), strict=True)
        )
        attributes["auto_pad"] = "VALID" if dilated or small else r.choice(("SAME_UPPER", "SAME_LOWER", "VALID"))
        return
    pads = [0] * (2 * rank)
    if kind == "same":
        pads = [min(e // 2, m) for e, m in zip(reach, most, strict=True)] * 2
    elif kind == "each":
        pads = [r.randint(0, m) for m in most * 2]
    elif kind == "one axis":
        axis = r.randrange(rank)
        pads[axis] = pads[rank + axis] = r.randint(0, most[axis])
    elif kind == "one side":
        side = r.randrange(2 * rank)
        pads[side] = r.randint(0, most[side % rank])
    if any(pads) or r.random() < 0.5:
        attributes["pads"] = pads


def _transposed(r: Random, attributes: dict[str, Any], spatial: list[int], stride: list[int], reach: list[int]) -> None:
    """What only transposed convolutions have: more output, or a stated one."""
    if r.random() < 0.3:
        attributes["output_padding"] = [r.randrange(s) for s in stride]
    if r.random() < 0.3:
        full = [(e - 1) * s + k for e, s, k in zip(spatial, stride, reach, strict=True)]
        attributes.pop("pads", None)
        attributes["output_shape"] = [r.randint(max(f - k, 1), f) for f, k in zip(full, reach, strict=True)]


def _case(
    r: Random, operator: str, attributes: dict[str, Any], arrays: dict[str, Array], dtype: str
) -> WindowCase | None:
    node = helper.make_node(operator, list(arrays), ["y"], **attributes)
    live = r.random() < 0.35
    feeds = {name: a for name, a in arrays.items() if name == "x" or live}
    reference = _model(node, arrays, feeds, "float32")
    if reference is None:
        return None
    session = onnxruntime.InferenceSession(reference.SerializeToString(), providers=["CPUExecutionProvider"])
    (wanted,) = session.run(None, {name: a.astype(np.float32) for name, a in feeds.items()})
    model = _model(node, arrays, feeds, dtype)
    assert model is not None
    return WindowCase(model, {name: a.astype(dtype) for name, a in feeds.items()}, wanted)


def _model(
    node: onnx.NodeProto, arrays: dict[str, Array], feeds: dict[str, Array], dtype: str
) -> onnx.ModelProto | None:
    """``node`` as a model; None where there is no such geometry."""
    fixed = [numpy_helper.from_array(a.astype(dtype), name) for name, a in arrays.items() if name not in feeds]
    inputs = [helper.make_tensor_value_info(name, _TYPES[dtype], a.shape) for name, a in feeds.items()]
    output = helper.make_tensor_value_info("y", _TYPES[dtype], None)
    graph = helper.make_graph([node], "windows", inputs, [output], fixed)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    try:
        inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    except onnx.shape_inference.InferenceError:
        return None
    shape = [d.dim_value for d in inferred.graph.output[0].type.tensor_type.shape.dim]
    return inferred if shape and min(shape) >= 1 else None
