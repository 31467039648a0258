"""One executable for all sizes: what it computes is what onnxruntime computes, and what a program of one size does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import landbridge as lb
from tests.open_dimensions.models import attention, convolutions, parts, positions

#: Relative to the largest number of a result: sums of hundreds of f32 products in another order.
TOLERANCE = 3e-6

DIMS = {
    "convolutions": {"N": "1..3", "H": "1..40", "W": "1..70@33"},
    "convolutions by 8": {"N": "1..1", "H": "16..64:8", "W": "8..256:8@64"},
    "attention": {"N": "1..3", "T": "1..50"},
    "parts": {"L": "2..90"},
    "positions": {"N": "1..4", "L": "1..60"},
}
MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "convolutions": convolutions,
    "convolutions by 8": convolutions,
    "attention": attention,
    "parts": parts,
    "positions": positions,
}


def legal(declared: str) -> tuple[int, int, int]:
    ends, _, step = declared.partition("@")[0].partition(":")
    low, high = ends.split("..")
    return int(low), int(high), int(step or 1)


def sizes(name: str) -> st.SearchStrategy[dict[str, int]]:
    """Drawn sizes; both bounds of each dimension are likely among them."""
    one = {}
    for dim, declared in DIMS[name].items():
        low, high, step = legal(declared)
        one[dim] = st.one_of(st.sampled_from([low, high]), st.integers(low // step, high // step).map(step.__mul__))
    return st.fixed_dictionaries(one)


class Case:
    """A model, its Session for all sizes, and onnxruntime's."""

    def __init__(self, name: str, target: str) -> None:
        self.model, self.target = MODELS[name](), target
        self.session = lb.Session(lb.compile(self.model, target, dims=DIMS[name]), num_threads=1)
        self.peer = onnxruntime.InferenceSession(self.model.SerializeToString())

    def feeds(self, values: dict[str, int]) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(sum(values.values()))
        shapes = {
            i.name: [d.dim_value or values[d.dim_param] for d in i.type.tensor_type.shape.dim]
            for i in self.model.graph.input
        }
        return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.fixture(scope="module", params=[(n, t) for n in MODELS for t in ("llvm", "c")], ids=" ".join)
def case(request: pytest.FixtureRequest) -> tuple[str, Case]:
    name, target = request.param
    return name, Case(name, target)


@pytest.mark.sample(2)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_every_size_is_right(case: tuple[str, Case], data: st.DataObject) -> None:
    name, c = case
    feeds = c.feeds(data.draw(sizes(name)))
    results = c.session(*feeds.values())
    for found, expected in zip(results, c.peer.run(None, feeds), strict=True):
        array = np.from_dlpack(found)
        assert array.shape == expected.shape
        assert np.abs(array - expected).max() <= TOLERANCE * max(1, np.abs(expected).max())


@pytest.mark.sample(2)
def test_as_a_program_of_one_size(case: tuple[str, Case]) -> None:
    name, c = case
    values = {dim: legal(declared)[1] for dim, declared in DIMS[name].items()}
    feeds = c.feeds(values)
    known = lb.Session(lb.compile(c.model, c.target, shapes={n: a.shape for n, a in feeds.items()}), num_threads=1)
    for found, expected in zip(c.session(*feeds.values()), known(*feeds.values()), strict=True):
        array, other = np.from_dlpack(found), np.from_dlpack(expected)
        assert np.abs(array - other).max() <= TOLERANCE * max(1, np.abs(other).max())
