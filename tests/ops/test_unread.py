"""Handlers that are declared to read no element of a weight build the same for any weight of its shape and dtype."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from landbridge.frontend.onnx.import_request import ImportRequest
from landbridge.frontend.onnx.importer import import_onnx
from landbridge.operators import REGISTRY, Kernel
from landbridge.ops.unread import MOST_READ, is_unread
from landbridge.targets import Target
from tests.ops.one_node import one_node

WIDTH = MOST_READ + 1
#: The shapes of operands that broadcast, and the positions of weights among these.
BROADCAST: list[tuple[list[tuple[int, ...]], tuple[int, ...]]] = [
    ([(2, WIDTH), (WIDTH,)], (1,)),
    ([(WIDTH,), (2, WIDTH)], (0,)),
    ([(1, WIDTH), (2, 1)], (0,)),
    ([(), (3, WIDTH)], (1,)),
]
#: The shapes of the operands of the operators with such handlers, and the positions of weights among these.
OPERANDS: dict[str, list[tuple[list[tuple[int, ...]], tuple[int, ...]]]] = {
    **dict.fromkeys(("Add", "Div", "Mul", "Sub"), BROADCAST),
    "MatMul": [
        ([(2, WIDTH), (WIDTH, 3)], (1,)),
        ([(3, WIDTH), (WIDTH,)], (0,)),
        ([(2, 3, WIDTH), (2, WIDTH, 3)], (1,)),
        ([(2, 3, WIDTH), (1, WIDTH, 3)], (1,)),
    ],
    "LayerNormalization": [([(2, WIDTH), (WIDTH,), (WIDTH,)], (1, 2)), ([(2, WIDTH), (WIDTH,), (1,)], (1,))],
    "RMSNormalization": [([(2, WIDTH), (WIDTH,)], (1,))],
}


def _handlers() -> list[Kernel]:
    return [each for each in REGISTRY.of_kind(Kernel) if any(is_unread(each.function, i) for i in range(4))]


def test_every_declaration_has_a_case() -> None:
    assert {(each.domain, each.op_type) for each in _handlers()} == {("", op_type) for op_type in OPERANDS}
    for kernel in _handlers():
        tested = {i for _, weights in OPERANDS[kernel.op_type] for i in weights}
        most = max(len(shapes) for shapes, _ in OPERANDS[kernel.op_type])
        assert {i for i in range(most) if is_unread(kernel.function, i)} == tested


def _weights(shape: tuple[int, ...], dtype: Any) -> list[np.ndarray[Any, Any]]:
    """Weights on which a handler might decide something: equal elements, zeros, ones, what is not finite, others."""
    ramp = np.arange(np.prod(shape)).reshape(shape) % 100
    found = [np.zeros(shape), np.ones(shape), ramp, -ramp % 100]
    if np.dtype(dtype).kind != "i":
        found += [np.full(shape, -0.0), np.full(shape, np.nan), np.full(shape, np.inf), ramp / 7]
    with np.errstate(invalid="ignore"):
        return [each.astype(dtype) for each in found]


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.int32], ids=lambda d: np.dtype(d).name
)
@pytest.mark.parametrize("op_type", OPERANDS)
def test_what_is_built_does_not_depend_on_elements(op_type: str, dtype: Any) -> None:
    if "Normalization" in op_type and np.dtype(dtype).kind == "i":
        pytest.skip("ONNX has it for floats")
    for shapes, weights in OPERANDS[op_type]:
        built = []
        variants = [_weights(shapes[i], dtype) for i in weights]
        for of_variant in zip(*variants, strict=True):
            arrays = [np.ones(shape, dtype) for shape in shapes]
            for i, array in zip(weights, of_variant, strict=True):
                arrays[i] = array
            model = one_node(op_type, arrays, _constants(shapes, weights), opset=23)
            built.append(str(import_onnx(ImportRequest(model, (Target("llvm"),))).module.op))
        assert len(set(built)) == 1
        assert len(built) >= 4


def _constants(shapes: list[tuple[int, ...]], weights: tuple[int, ...]) -> tuple[int, ...]:
    """All operands but one are constants."""
    computed = next(i for i in range(len(shapes)) if i not in weights)
    return tuple(i for i in range(len(shapes)) if i != computed)
