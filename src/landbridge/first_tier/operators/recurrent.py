"""Translations of LSTM, GRU and RNN whose activations are the default ones and whose sequences are all as long, and of
DynamicQuantizeLSTM.
"""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.first_tier.call_builder import ShapedValue
from landbridge.first_tier.not_taken import NotTakenError
from landbridge.first_tier.operators.request import Request, translates
from landbridge.operators.implementations import HOST_PREFIX

_ACTIVATIONS = {
    "LSTM": ["Sigmoid", "Tanh", "Tanh"],
    "GRU": ["Sigmoid", "Tanh"],
    "RNN": ["Tanh"],
}


@translates("LSTM", "GRU", "RNN")
def recurrent(r: Request) -> Sequence[ShapedValue]:
    """Translates a recurrent layer; steps are the first axis."""
    kind, x, weight, matrix, bias = r.node.op_type, r.input(0), r.input(1), r.input(2), r.optional(3)
    states = [r.optional(number) for number in ((5, 6) if kind == "LSTM" else (5,))]
    dtype = r.floats(x, weight, matrix, bias, *states)
    direction = r.attribute("direction", "forward")
    directions = {"forward": 1, "reverse": 1, "bidirectional": 2}.get(direction, 0)
    usual = _ACTIVATIONS[kind] * directions
    chosen = r.given("activations")
    is_usual = chosen is None or (isinstance(chosen, list) and chosen == usual)
    if (
        not is_usual
        or r.attribute("layout", 0)
        or r.attribute("input_forget", 0)
        or r.optional(7) is not None
        or 0 in x.shape
        or (len(x.shape), len(weight.shape), len(matrix.shape)) != (3, 3, 3)
    ):
        raise NotTakenError(f"{kind} of other forms")
    steps, batch, inputs = x.shape
    size = matrix.shape[-1]
    gates = len({"LSTM": "iofc", "GRU": "zrh", "RNN": "h"}[kind]) * size
    if (
        (weight.shape, matrix.shape) != ((directions, gates, inputs), (directions, gates, size))
        or (bias is not None and bias.shape != (directions, 2 * gates))
        or any(state is not None and state.shape != (directions, batch, size) for state in states)
        or r.attribute("hidden_size", size) != size
    ):
        raise NotTakenError(f"{kind} of shapes that do not fit")
    if r.optional(4) is not None and (r.known(4) != steps).any():
        raise NotTakenError(f"{kind} of sequences that end early")
    options: dict[str, object] = {"direction": direction}
    if kind == "GRU":
        options["linear_before_reset"] = r.attribute("linear_before_reset", 0)
    state = ((directions, batch, size), dtype)
    types = [((steps, directions, batch, size), dtype), *(state for _ in states)]
    return r.call(kind, [x, weight, matrix, bias, *states], types, options)


@translates("com.microsoft.DynamicQuantizeLSTM")
def quantized_lstm(r: Request) -> Sequence[ShapedValue]:
    """Translates DynamicQuantizeLSTM to the host operator of that name."""
    x, weight, matrix, bias = r.input(0), r.input(1), r.input(2), r.optional(3)
    states, scales = [r.optional(5), r.optional(6)], [r.input(number) for number in (8, 9, 10, 11)]
    direction = r.attribute("direction", "forward")
    directions = {"forward": 1, "reverse": 1, "bidirectional": 2}.get(direction, 0)
    r.floats(x, bias, scales[0], scales[2], *states)
    if (
        (len(x.shape), len(matrix.shape)) != (3, 3)
        or 0 in x.shape
        or r.given("activations") is not None
        or r.attribute("input_forget", 0)
        or r.optional(7) is not None
        or x.dtype != "float32"
        or {weight.dtype, matrix.dtype, scales[1].dtype, scales[3].dtype} not in ({"int8"}, {"uint8"})
    ):
        raise NotTakenError("DynamicQuantizeLSTM of other forms")
    steps, batch, inputs = x.shape
    size = matrix.shape[1]
    state = (directions, batch, size)
    if (
        (weight.shape, matrix.shape) != ((directions, inputs, 4 * size), (directions, size, 4 * size))
        or (bias is not None and bias.shape != (directions, 8 * size))
        or any(each is not None and each.shape != state for each in states)
        or any(each.shape not in ((directions,), (directions, 4 * size)) for each in scales)
        or r.attribute("hidden_size", 0) != size
    ):
        raise NotTakenError("DynamicQuantizeLSTM of shapes that do not fit")
    if r.optional(4) is not None and (r.known(4) != steps).any():
        raise NotTakenError("DynamicQuantizeLSTM of sequences that end early")
    operands = [x, weight, matrix, bias, None, *states, None, *scales]
    results = [((steps, *state), x.dtype), (state, x.dtype), (state, x.dtype)]
    options: dict[str, object] = {"direction": direction, "hidden_size": size}
    operator = f"{HOST_PREFIX}com.microsoft.DynamicQuantizeLSTM@1"
    return r.call("HostOperator", operands, results, {"operator": operator, "results": 3, "options": options})
