"""Attention on devices reads a cache as far as it is filled, and has the CPU's results with every option."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import landbridge as lb
from tests.session.state_histories import read
from tests.session.test_states_on_devices import PLACES, on, target_of

Array = np.ndarray[Any, Any]
BATCH, STEPS, CAPACITY, HEADS, SHARED, SIZE = 2, 3, 20, 4, 2, 8
_KINDS = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int32): TensorProto.INT32}
_KINDS |= {np.dtype(np.int64): TensorProto.INT64, np.dtype(np.bool_): TensorProto.BOOL}


def floats(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def caches(rng: np.random.Generator, filled: int, behind: float) -> dict[str, Array]:
    """Keys and values of ``filled`` steps, and ``behind`` in what is not filled."""
    found = {name: np.full((BATCH, SHARED, CAPACITY, SIZE), behind, np.float32) for name in ("pk", "pv")}
    for cache in found.values():
        cache[:, :, :filled] = floats(rng, BATCH, SHARED, filled, SIZE)
    return found


def model(nodes: list[Any], feeds: dict[str, Array], outputs: dict[str, Any], opset: int) -> ModelProto:
    inputs = [helper.make_tensor_value_info(name, _KINDS[a.dtype], a.shape) for name, a in feeds.items()]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()]
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(helper.make_graph(nodes, "g", inputs, results), opset_imports=opsets, ir_version=10)


def grouped(rng: np.random.Generator, options: dict[str, Any], filled: int) -> tuple[ModelProto, dict[str, Array]]:
    """GroupQueryAttention of ``filled`` steps and the new ones."""
    feeds = {name: floats(rng, BATCH, STEPS, n * SIZE) for name, n in (("q", HEADS), ("k", SHARED), ("v", SHARED))}
    feeds |= caches(rng, filled, np.nan)
    feeds |= {"ends": np.full(BATCH, filled + STEPS - 1, np.int32), "total": np.array(filled + STEPS, np.int32)}
    more = ["cos", "sin"] if "do_rotary" in options else ["", ""]
    more += ["", "", "sink"] if "sink" in options else []  # without position_ids and attention_bias
    shapes = {"cos": (CAPACITY, SIZE // 2), "sin": (CAPACITY, SIZE // 2), "sink": (HEADS,)}
    feeds |= {name: floats(rng, *shapes[name]) for name in more if name}
    attributes = {name: value for name, value in options.items() if name != "sink"}
    node = helper.make_node(
        "GroupQueryAttention",
        ["q", "k", "v", "pk", "pv", "ends", "total", *more],
        ["y", "nk", "nv"],
        domain="com.microsoft",
        num_heads=HEADS,
        kv_num_heads=SHARED,
        **attributes,
    )
    results = {"y": feeds["q"].shape, "nk": feeds["pk"].shape, "nv": feeds["pv"].shape}
    return model([node], feeds, results, 21), feeds


def scattered(rng: np.random.Generator, options: dict[str, Any], filled: int) -> tuple[ModelProto, dict[str, Array]]:
    """Attention of ONNX 24 over a cache that TensorScatter writes; the rows of a batch have different lengths."""
    feeds = {"q": floats(rng, BATCH, HEADS, STEPS, SIZE)}
    feeds |= {name: floats(rng, BATCH, SHARED, STEPS, SIZE) for name in "kv"}
    feeds |= caches(rng, filled, 0.0 if "qk" in options else np.nan)
    feeds["at"] = np.full(BATCH, filled)
    feeds["n"] = np.array([filled + STEPS, 1 + filled])
    if "mask" in options:
        full = floats(rng, BATCH, 1, STEPS, options["mask"])
        feeds["mask"] = full > 0 if options["kind"] == "bool" else full
    nodes = [
        helper.make_node("TensorScatter", [old, new, "at"], [to], axis=2)
        for old, new, to in (("pk", "k", "nk"), ("pv", "v", "nv"))
    ]
    inputs = ["q", "nk", "nv", "mask" if "mask" in options else "", "", "", "n"]
    attributes = {name: value for name, value in options.items() if name not in ("mask", "kind", "qk")}
    outputs = ["y", "", "", "qk"] if "qk" in options else ["y"]
    nodes.append(helper.make_node("Attention", inputs, outputs, **attributes))
    results = {"y": feeds["q"].shape, "nk": feeds["pk"].shape, "nv": feeds["pv"].shape}
    if "qk" in options:
        results["qk"] = (BATCH, HEADS, STEPS, CAPACITY)
    return model(nodes, feeds, results, 24), feeds


GROUPED: dict[str, dict[str, Any]] = {
    "plain": {},
    "rotary": {"do_rotary": 1},
    "softcap and scale": {"softcap": 3.0, "scale": 0.5},
    "window": {"local_window_size": 4},
    "sink": {"sink": 1},
}
SCATTERED: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"is_causal": 1},
    "mask of bools": {"mask": CAPACITY, "kind": "bool"},
    "mask of floats": {"mask": CAPACITY, "kind": "float", "is_causal": 1},
    "a shorter mask": {"mask": CAPACITY - 4, "kind": "bool"},
    "softcap": {"softcap": 2.0},
    "scores": {"qk": 1},
}
CASES = [(grouped, name, options) for name, options in GROUPED.items()]
CASES += [(scattered, name, options) for name, options in SCATTERED.items()]


@pytest.mark.sample(6)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("create", "options"), [pytest.param(c, o, id=f"{c.__name__}: {name}") for c, name, o in CASES]
)
def test_results_are_those_of_a_cpu(create: Any, options: dict[str, Any], place: str) -> None:
    """Rows that are not filled are no numbers, where no other operand has elements for them."""
    rng = np.random.default_rng(17)
    session, on_cpu = None, None
    for filled in (0, 1, 5, CAPACITY - STEPS):
        graph, feeds = create(rng, options, filled)
        if session is None or on_cpu is None:
            session, on_cpu = on(place, graph), lb.Session(lb.compile(graph))
        found = session(feeds)
        numbers = {name: np.nan_to_num(a, nan=0.0) if a.dtype == np.float32 else a for name, a in feeds.items()}
        expected = on_cpu(numbers)
        assert np.isfinite(read(found["y"])).all()
        np.testing.assert_allclose(read(found["y"]), np.asarray(expected["y"]), rtol=1e-5, atol=1e-5)
        if "qk" in options:
            np.testing.assert_allclose(read(found["qk"]), np.asarray(expected["qk"]), rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore::landbridge.FallbackWarning")
@pytest.mark.parametrize("place", ["opencl", "vulkan"])
def test_kernels_that_a_device_cannot_run_read_the_whole_cache(place: str) -> None:
    """Of float64, on a target without it: kernels of the host load no length, and the mask leaves out the rest."""
    rng = np.random.default_rng(18)
    graph, feeds = scattered(rng, {}, 5)
    for value in (*graph.graph.input, *graph.graph.output):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE
    wide = {name: np.nan_to_num(a).astype(np.float64) if a.dtype == np.float32 else a for name, a in feeds.items()}
    target = lb.Target({**target_of(place).to_dict(), "fp64": False})
    program = lb.compile(graph, target)
    found = lb.Session(program, device=PLACES[place])(wide)
    expected = lb.Session(lb.compile(graph))(wide)
    np.testing.assert_allclose(read(found["y"]), np.asarray(expected["y"]), rtol=1e-12)
