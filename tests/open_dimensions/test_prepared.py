"""Weights that stay replaceable are packed once for all sizes, and again when they are given other values."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import numpy_helper, parser

import landbridge as lb
from landbridge.executable.instance import instance
from landbridge.executable.instructions import Prepared, flattened

RNG = np.random.default_rng(3)
WEIGHTS = {
    "first": RNG.standard_normal((32, 16, 3, 3), np.float32) / 12,
    "second": RNG.standard_normal((48, 32, 1, 1), np.float32) / 6,
    "head": RNG.standard_normal((48, 32), np.float32) / 7,
    "shift": RNG.standard_normal((32,), np.float32),
}
SIZES = st.tuples(st.integers(1, 3), st.integers(3, 40), st.integers(3, 40))


def network(weights: dict[str, np.ndarray] = WEIGHTS) -> onnx.ModelProto:
    """Two convolutions and a product; one weight is made as large as the batch, which no preparation can do for all."""
    made = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[N, 16, H, W] x) => (float[N, 32] y, float[N, 32] z) {
            a = Conv<pads = [1, 1, 1, 1]>(x, first)  c = Conv(a, second)  d = GlobalAveragePool(c)  e = Flatten(d)
            y = MatMul(e, head)
            shape = Shape<start = 0, end = 1>(x)  more = Constant<value = int64[1] {32}>()
            both = Concat<axis = 0>(shape, more)  wide = Expand(shift, both)  z = Softmax(wide) }"""
    )
    made.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    return made


@pytest.fixture(scope="module")
def executable() -> lb.Executable:
    return lb.compile(network(), dims={"N": "1..3", "H": "3..40", "W": "3..40"}, mutable=list(WEIGHTS))


def picture(size: tuple[int, int, int]) -> np.ndarray:
    n, h, w = size
    return np.random.default_rng(size).standard_normal((n, 16, h, w), np.float32)


def check(session: lb.Session, weights: dict[str, np.ndarray], size: tuple[int, int, int]) -> list[np.ndarray]:
    """What ``session`` gives, which onnxruntime gives too."""
    x = picture(size)
    found = [np.array(np.from_dlpack(each)) for each in session(x)]
    expected = onnxruntime.InferenceSession(network(weights).SerializeToString()).run(None, {"x": x})
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)  # of values below 2, sums of 144 terms
    return found


@given(st.lists(SIZES, min_size=2, max_size=5), st.integers(0, 4))
@settings(max_examples=15, deadline=None)
def test_one_session_for_all_sizes(executable: lb.Executable, sizes: list[tuple[int, int, int]], when: int) -> None:
    assert Prepared in map(type, flattened(executable.main.instructions))
    session, weights = lb.Session(executable, num_threads=1), dict(WEIGHTS)
    for number, size in enumerate(sizes):
        if number == when:
            weights = {name: array * np.float32(0.5) for name, array in WEIGHTS.items()}
            session.set_params(weights)
        found = check(session, weights, size)
        owned = lb.Session(instance(executable, dict(zip("NHW", size, strict=True))), num_threads=1)
        owned.set_params(weights)
        for a, b in zip(found, owned(picture(size)), strict=True):
            assert np.array_equal(a, np.from_dlpack(b))
    program = session._executor.instances.program_of("main")  # type: ignore[attr-defined]
    assert session._executor.instances.executors() == {program.executor}  # type: ignore[attr-defined]


@pytest.mark.parametrize("size", [(1, 40, 40), (3, 3, 8)])
def test_results_are_those_of_a_compile_for_the_size(executable: lb.Executable, size: tuple[int, int, int]) -> None:
    fixed = lb.compile(network(), shapes={"x": picture(size).shape}, mutable=list(WEIGHTS))
    session = lb.Session(executable, num_threads=1)
    for first in ((2, 9, 9), size):
        found = check(session, WEIGHTS, first)
    for a, b in zip(found, lb.Session(fixed, num_threads=1)(picture(size)), strict=True):
        np.testing.assert_allclose(a, np.from_dlpack(b), rtol=1e-5, atol=1e-5)


def test_nothing_is_prepared_when_sizes_change(executable: lb.Executable) -> None:
    session = lb.Session(executable, num_threads=1)
    session(picture((1, 9, 9)))
    done: list[None] = []
    acquisition = session._executor.instances.program_of("main").executor.program._acquisition  # type: ignore[attr-defined]
    acquisition.preparation = lambda: done.append(None)
    session.prepare(N=[1, 2], H=[9, 40], W=[9, 12])
    session(picture((2, 40, 12)))
    assert not done
    session.set_params({"head": WEIGHTS["head"]})
    assert len(done) == 1
