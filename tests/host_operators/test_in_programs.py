"""Host operators of the domain ``landbridge``, which the exporter of torch writes, as nodes of programs: by numpy."""

from __future__ import annotations

from collections.abc import Callable
from math import lgamma
from typing import Any

import numpy as np
import onnx
import pytest

import landbridge as lb

Array = np.ndarray[Any, Any]
pytestmark = [
    pytest.mark.filterwarnings("ignore::landbridge.FallbackWarning"),
    pytest.mark.filterwarnings("ignore::landbridge.ModelWarning"),
]

RNG = np.random.default_rng(0)
SQUARE = RNG.standard_normal((3, 4, 4)).astype(np.float32)
DEFINITE = (SQUARE @ SQUARE.swapaxes(1, 2) + 4 * np.eye(4, dtype=np.float32)).astype(np.float32)
LOWER = np.tril(DEFINITE)
RIGHT = RNG.standard_normal((3, 4, 2)).astype(np.float32)
RANKED = np.array([[3, 1, 3, 2, 3, 1], [5, 4, 4, 0, 0, 0]], np.float32)


def results(call: str, ranks: str, *inputs: Array) -> list[Array]:
    """The outputs, as many as ``ranks`` has digits, of the node ``call`` of inputs a, b, ..."""
    given = ", ".join(f"float[{', '.join(map(str, x.shape))}] {name}" for name, x in zip("ab", inputs, strict=False))
    text = f'<ir_version: 8, opset_import: ["" : 17, "landbridge" : 1]> g ({given}) => '
    made = [f"y{i}" for i in range(len(ranks))]
    text += f"({', '.join(f'float {name}' for name in made)}) {{ {', '.join(made)} = landbridge.{call} }}"
    model = onnx.parser.parse_model(text)
    for output in model.graph.output:
        output.ClearField("type")  # which ONNX knows not, and the importer finds
    return [np.asarray(y) for y in lb.Session(lb.compile(model))(*inputs)]


def running_last(compare: Callable[[Array, Array], Array], x: Array) -> tuple[Array, Array]:
    """The running extremes of the rows of ``x``, and the last position of each."""
    values, places = x.copy(), np.zeros(x.shape, np.int64)
    for row in range(x.shape[0]):
        best = 0
        for i in range(x.shape[1]):
            best = i if compare(x[row, i], x[row, best]) else best
            values[row, i], places[row, i] = x[row, best], best
    return values, places


def test_factors() -> None:
    (factor, fails) = results("Cholesky <upper = 0> (a)", "33", DEFINITE)
    np.testing.assert_allclose(factor, np.linalg.cholesky(DEFINITE.astype(np.float64)), rtol=1e-5, atol=1e-5)
    assert not fails.any()
    q, r = results('QR <mode = "reduced"> (a)', "33", SQUARE)
    np.testing.assert_allclose(q @ r, SQUARE, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(q.swapaxes(1, 2) @ q, np.broadcast_to(np.eye(4), q.shape), atol=1e-5)
    u, s, v = results("SVD <full = 0> (a)", "323", SQUARE)
    np.testing.assert_allclose(s, np.linalg.svd(SQUARE.astype(np.float64), compute_uv=False), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(u * s[:, None] @ v, SQUARE, rtol=1e-4, atol=1e-5)
    values, vectors = results("Eigh <upper = 0> (a)", "23", DEFINITE)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(DEFINITE.astype(np.float64)), rtol=1e-5)
    np.testing.assert_allclose(DEFINITE @ vectors, vectors * values[:, None], rtol=1e-3, atol=1e-3)
    sign, log = results("LogDeterminant (a)", "11", SQUARE)
    wanted = np.linalg.det(SQUARE.astype(np.float64))
    np.testing.assert_allclose(sign * np.exp(log), wanted, rtol=1e-4)


def test_equations() -> None:
    (x, fails) = results("Solve <left = 1> (a, b)", "33", SQUARE, RIGHT)
    np.testing.assert_allclose(x, np.linalg.solve(SQUARE.astype(np.float64), RIGHT), rtol=1e-3, atol=1e-4)
    assert not fails.any()
    (x,) = results("SolveTriangular <upper = 0, left = 1, unit = 0> (a, b)", "3", DEFINITE, RIGHT)
    np.testing.assert_allclose(x, np.linalg.solve(LOWER.astype(np.float64), RIGHT), rtol=1e-4, atol=1e-5)


def test_running_extremes_and_modes() -> None:
    for op_type, compare in (("CumMax", np.greater_equal), ("CumMin", np.less_equal)):
        pairs = zip(results(f"{op_type} <axis = 1> (a)", "22", RANKED), running_last(compare, RANKED), strict=True)
        for found, wanted in pairs:
            np.testing.assert_array_equal(found, wanted)
    values, places = results("Mode <axis = 1> (a)", "22", RANKED)
    np.testing.assert_array_equal(values, [[3], [0]])
    np.testing.assert_array_equal(places, [[4], [5]])


def test_gamma_and_its_derivative() -> None:
    x = np.array([0.25, 0.5, 1, 1.5, 2, 7.25, 40], np.float32)
    (found,) = results("LogGamma (a)", "1", x)
    np.testing.assert_allclose(found, [lgamma(v) for v in x.tolist()], rtol=1e-5, atol=1e-6)
    (found,) = results("Digamma (a)", "1", x)
    step = 1e-5
    slope = [(lgamma(v + step) - lgamma(v - step)) / (2 * step) for v in x.tolist()]
    np.testing.assert_allclose(found, slope, rtol=1e-4, atol=1e-4)


def test_running_products() -> None:
    """CumProd of the domain is a kernel: ONNX has the operator from opset 26 on."""
    (found,) = results("CumProd <axis = 1> (a)", "2", RANKED)
    np.testing.assert_allclose(found, np.cumprod(RANKED, 1), rtol=1e-6)
