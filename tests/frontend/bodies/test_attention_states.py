"""GroupQueryAttention whose past and present are one buffer, beside onnxruntime's, which is bound the same way."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper

import landbridge as lb

Array = np.ndarray[Any, Any]

HEADS, SHARED, SIZE = 4, 2, 16


def model(batch: int, steps: int | str, capacity: int, packed: bool, **attributes: Any) -> ModelProto:
    """As exporters write it: past and present of one shape, lengths as inputs."""
    widths = (
        {"q": (HEADS + 2 * SHARED) * SIZE} if packed else {"q": HEADS * SIZE, "k": SHARED * SIZE, "v": SHARED * SIZE}
    )
    floats = {name: [batch, steps, width] for name, width in widths.items()}
    floats |= {name: [batch, SHARED, capacity, SIZE] for name in ("pk", "pv")}
    rotary = ["c", "s"] if attributes.get("do_rotary") else []
    floats |= {name: [capacity, SIZE // 2] for name in rotary}
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in floats.items()]
    inputs.append(helper.make_tensor_value_info("ends", TensorProto.INT32, [batch]))
    inputs.append(helper.make_tensor_value_info("total", TensorProto.INT32, []))
    present = [helper.make_tensor_value_info(name, TensorProto.FLOAT, floats["pk"]) for name in ("nk", "nv")]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, steps, HEADS * SIZE])
    given = [*(["q", "", ""] if packed else ["q", "k", "v"]), "pk", "pv", "ends", "total", *rotary]
    node = helper.make_node(
        "GroupQueryAttention",
        given,
        ["y", "nk", "nv"],
        domain="com.microsoft",
        name="attend",
        num_heads=HEADS,
        kv_num_heads=SHARED,
        **attributes,
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(helper.make_graph([node], "g", inputs, [y, *present]), opset_imports=opsets, ir_version=10)


class Theirs:
    """onnxruntime with one buffer bound as past and as present."""

    def __init__(self, content: bytes, shape: tuple[int, ...]) -> None:
        self.session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
        self.keys, self.values = (onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros(shape, np.float32)) for _ in "kv")

    def step(self, feeds: dict[str, Array]) -> Array:
        binding = self.session.io_binding()
        for name, value in feeds.items():
            binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(value))
        for (past, present), value in {("pk", "nk"): self.keys, ("pv", "nv"): self.values}.items():
            binding.bind_ortvalue_input(past, value)
            binding.bind_ortvalue_output(present, value)
        binding.bind_output("y")
        self.session.run_with_iobinding(binding)
        return binding.get_outputs()[-1].numpy()


FORMS: dict[str, Any] = {
    "apart": (False, {}),
    "packed and turned": (True, {"do_rotary": 1}),
    "a window": (False, {"local_window_size": 3}),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("batch", [1, 2])
def test_a_prompt_and_steps_in_one_buffer(form: str, batch: int) -> None:
    """What is new is written, each run of another length; nothing is copied or moved but by kernels that compute."""
    packed, attributes = FORMS[form]
    capacity, rng = 12, np.random.default_rng(5)
    graph = model(batch, "S", capacity, packed, **attributes)
    session = lb.Session(lb.compile(graph))
    session.bind_state("nk", "pk")
    session.bind_state("nv", "pv")
    shape = (batch, SHARED, capacity, SIZE)
    theirs = Theirs(graph.SerializeToString(), shape)
    tables = {}
    if attributes.get("do_rotary"):
        angles = np.outer(np.arange(capacity), 0.8 ** np.arange(SIZE // 2)).astype(np.float32)
        tables = {"c": np.cos(angles), "s": np.sin(angles)}
    widths = [(HEADS + 2 * SHARED) * SIZE] if packed else [HEADS * SIZE, SHARED * SIZE, SHARED * SIZE]
    total, where = 0, set()
    for steps in (4, 1, 1, 3, 1) if batch == 1 else (4, 1, 1):
        total += steps
        feeds = {
            n: rng.standard_normal((batch, steps, w)).astype(np.float32) for n, w in zip("qkv", widths, strict=False)
        }
        feeds |= tables | {"ends": np.full(batch, total - 1, np.int32), "total": np.array(total, np.int32)}
        for name, value in feeds.items():
            session.set_input(name, value)
        with lb.no_copies():
            session.run()
        np.testing.assert_allclose(np.asarray(session.get_output("y")), theirs.step(feeds), rtol=2e-5, atol=2e-5)
        for present, past, value in (("nk", "pk", theirs.keys), ("nv", "pv", theirs.values)):
            found = session.get_output(present)
            where.add((present, found.data_address))
            assert found.data_address == session.get_input(past).data_address
            np.testing.assert_allclose(np.asarray(found), value.numpy(), rtol=2e-5, atol=2e-5)
    assert len(where) == 2


def test_a_step_moves_no_byte_of_the_buffer() -> None:
    """Of the buffer only what a step attends to is read, and its own rows are written."""
    capacity = 64
    session = lb.Session(lb.compile(model(1, 1, capacity, packed=False)))
    session.bind_state("nk", "pk")
    session.bind_state("nv", "pv")
    marked = np.full((1, SHARED, capacity, SIZE), np.nan, np.float32)  # what is read by mistake shows
    marked[:, :, :5] = 1
    session.set_input("pk", marked)
    session.set_input("pv", marked)
    for name in "qkv":
        session.set_input(name, np.ones(next(s.shape for s in session.inputs if s.name == name), np.float32))
    session.set_input("ends", np.array([5], np.int32))
    session.set_input("total", np.array(6, np.int32))
    session.run()
    with lb.ledger() as ledger:
        session.run()
    assert ledger.total_bytes == 0 and ledger.kernel_bytes <= 2 * 6 * SHARED * SIZE * 4  # the slices that it attends to
    np.testing.assert_allclose(np.asarray(session.get_output("y")), 1, rtol=1e-6)
    after = np.asarray(session.get_output("nv"))
    assert np.isfinite(after[:, :, :6]).all() and np.isnan(after[:, :, 6:]).all()


@pytest.mark.sample(2)
@pytest.mark.parametrize("total", [13, 0, -1, 2**31 - 1])
def test_a_step_beyond_the_space_is_refused_before_anything_is_written(total: int) -> None:
    capacity = 12
    session = lb.Session(lb.compile(model(1, 1, capacity, packed=False)))
    session.bind_state("nk", "pk")
    session.bind_state("nv", "pv")
    before = np.random.default_rng(1).random((1, SHARED, capacity, SIZE), np.float32)
    session.set_input("pk", before)
    for name in "qkv":
        session.set_input(name, np.ones(next(s.shape for s in session.inputs if s.name == name), np.float32))
    session.set_input("ends", np.array([3], np.int32))
    session.set_input("total", np.array(4, np.int32))
    session.run()
    retained = np.array(session.get_output("nk"))
    session.set_input("total", np.array(total, np.int32))
    with pytest.raises(lb.ShapeError, match="the steps so far with those of the run"):
        session.run()
    np.testing.assert_array_equal(np.asarray(session.get_output("nk")), retained)


def test_without_a_state_present_is_a_copy_of_past_with_the_new_rows() -> None:
    capacity = 12
    session = lb.Session(lb.compile(model(1, 1, capacity, packed=False)))
    rng = np.random.default_rng(2)
    feeds = {spec.name: rng.random(spec.shape, np.float32) for spec in session.inputs if spec.dtype == "float32"}
    past = feeds["pk"].copy()
    found = session({**feeds, "ends": np.array([7], np.int32), "total": np.array(8, np.int32)})
    np.testing.assert_array_equal(feeds["pk"], past)
    past[:, :, 7] = feeds["k"].reshape(1, SHARED, SIZE)
    np.testing.assert_array_equal(np.asarray(found["nk"]), past)


def exported() -> ModelProto:
    """As onnxruntime-genai's builder writes it: a past length and a total length, which is that of a mask."""

    def info(name: str, shape: list[int | str], kind: int = TensorProto.FLOAT) -> Any:
        return helper.make_tensor_value_info(name, kind, shape)

    past = [info(name, ["B", SHARED, "P", SIZE]) for name in ("pk", "pv")]
    inputs = [info("x", ["B", "S", (HEADS + 2 * SHARED) * SIZE]), info("mask", ["B", "T"], TensorProto.INT64), *past]
    present = [info(name, ["B", SHARED, "T", SIZE]) for name in ("nk", "nv")]
    attention = helper.make_node(
        "GroupQueryAttention",
        ["x", "", "", "pk", "pv", "ends", "n"],
        ["y", "nk", "nv"],
        domain="com.microsoft",
        num_heads=HEADS,
        kv_num_heads=SHARED,
    )
    nodes = [
        helper.make_node("Constant", [], ["one"], value_ints=[1]),
        helper.make_node("ReduceSum", ["mask", "one"], ["sums"], keepdims=0),
        helper.make_node("Sub", ["sums", "one"], ["last"]),
        helper.make_node("Cast", ["last"], ["ends"], to=TensorProto.INT32),
        helper.make_node("Shape", ["mask"], ["at"], start=1, end=2),
        helper.make_node("Squeeze", ["at"], ["n64"]),
        helper.make_node("Cast", ["n64"], ["n"], to=TensorProto.INT32),
        attention,
    ]
    graph = helper.make_graph(nodes, "g", inputs, [info("y", ["B", "S", HEADS * SIZE]), *present])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


@pytest.mark.parametrize("length", ["P", 12])
def test_an_exporters_model_with_a_state_requested(length: int | str) -> None:
    """Its declared lengths differ; ``alias`` says that they are one buffer, of any length or of one."""
    graph = exported()
    shapes = dict.fromkeys(("pk", "pv"), ("B", SHARED, length, SIZE))
    session = lb.Session(lb.compile(graph, alias={"nk": "pk", "nv": "pv"}, shapes=shapes))
    session.bind_state("nk", "pk")
    session.bind_state("nv", "pv")
    capacity, rng = (1, SHARED, 12, SIZE), np.random.default_rng(3)
    session.set_input("pk", np.zeros(capacity, np.float32))
    session.set_input("pv", np.zeros(capacity, np.float32))
    theirs, total = Theirs(graph.SerializeToString(), capacity), 0
    for steps in (5, 1, 1, 1):
        total += steps
        x = rng.standard_normal((1, steps, (HEADS + 2 * SHARED) * SIZE)).astype(np.float32)
        feeds = {"x": x, "mask": np.ones((1, total), np.int64)}
        for name, value in feeds.items():
            session.set_input(name, value)
        session.run()
        np.testing.assert_allclose(np.asarray(session.get_output("y")), theirs.step(feeds), rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(np.asarray(session.get_output("nk")), theirs.keys.numpy(), rtol=2e-5, atol=2e-5)
    assert session.get_output("nk").data_address == session.get_input("pk").data_address


def test_a_state_that_grows_says_how_it_is_one_buffer() -> None:
    session = lb.Session(lb.compile(exported()))
    with pytest.raises(lb.InputError, match=r"compile with alias=\{'nk': 'pk'\}"):
        session.bind_state("nk", "pk")
