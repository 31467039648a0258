"""Outputs that are the memory of an input: what was there stays, and what is new is written, nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import landbridge as lb

Array = np.ndarray[Any, Any]

ROWS, WIDTH, NEW = 12, 8, 2


def model(nodes: list[Any], inputs: dict[str, Any], outputs: dict[str, Any], opset: int = 18) -> ModelProto:
    def info(name: str, fact: Any) -> Any:
        shape, kind = fact if isinstance(fact[0], tuple) else (fact, TensorProto.FLOAT)
        return helper.make_tensor_value_info(name, kind, shape)

    graph = helper.make_graph(
        nodes, "g", [info(*each) for each in inputs.items()], [info(*each) for each in outputs.items()]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def scattered(kind: str) -> ModelProto:
    """``after`` is ``before`` with ``new`` at ``at``."""
    rows = {"before": (ROWS, WIDTH)}
    match kind:
        case "ScatterND":
            at: Any = ((NEW, 1), TensorProto.INT64)
            nodes, new = [helper.make_node(kind, ["before", "at", "new"], ["after"])], (NEW, WIDTH)
        case "ScatterElements":
            at = ((NEW, WIDTH), TensorProto.INT64)
            nodes, new = [helper.make_node(kind, ["before", "at", "new"], ["after"], axis=0)], (NEW, WIDTH)
        case _:
            at = ((1,), TensorProto.INT64)
            flat = [helper.make_node("Unsqueeze", [name, "zero"], [f"{name}_3"]) for name in ("before", "new")]
            put = helper.make_node(kind, ["before_3", "new_3", "at"], ["after_3"], axis=1)
            nodes = [helper.make_node("Constant", [], ["zero"], value_ints=[0]), *flat, put]
            nodes.append(helper.make_node("Squeeze", ["after_3", "zero"], ["after"]))
            new = (NEW, WIDTH)
    return model(nodes, rows | {"at": at, "new": new}, {"after": (ROWS, WIDTH)}, 24)


def indices(kind: str, first: int) -> Array:
    match kind:
        case "ScatterND":
            return np.arange(first, first + NEW)[:, None]
        case "ScatterElements":
            return np.repeat(np.arange(first, first + NEW)[:, None], WIDTH, 1)
        case _:
            return np.array([first])


def watched(session: lb.Session) -> int:
    """Bytes that kernels of a run only move."""
    with lb.ledger() as ledger:
        session.run()
    return sum(entry.nbytes for entry in ledger.entries)


KINDS = ["ScatterND", "ScatterElements", "TensorScatter"]


@pytest.mark.sample(4)
@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_state_is_one_memory_and_only_new_rows_are_written(kind: str, target: str) -> None:
    session = lb.Session(lb.compile(scattered(kind), target))
    session.bind_state("after", "before")
    rng = np.random.default_rng(3)
    expected = rng.random((ROWS, WIDTH), np.float32)
    session.set_input("before", expected)
    where = session.get_input("before").data_address
    for first in (4, 0, 10, 5):
        new = rng.random((NEW, WIDTH), np.float32)
        expected[first : first + NEW] = new
        session.set_input("at", indices(kind, first))
        session.set_input("new", new)
        with lb.no_copies(kernels=True):
            assert watched(session) == 0
        after = session.get_output("after")
        assert after.data_address == session.get_input("before").data_address == where
        np.testing.assert_array_equal(np.asarray(after), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_other_memory_is_copied_once_and_the_ledger_says_so(kind: str) -> None:
    session = lb.Session(lb.compile(scattered(kind)))
    before, new = np.ones((ROWS, WIDTH), np.float32), np.zeros((NEW, WIDTH), np.float32)
    for name, value in {"before": before, "at": indices(kind, 3), "new": new}.items():
        session.set_input(name, value)
    assert watched(session) == before.nbytes
    expected = before.copy()
    expected[3 : 3 + NEW] = 0
    np.testing.assert_array_equal(np.asarray(session.get_output("after")), expected)
    np.testing.assert_array_equal(np.asarray(session.get_input("before")), before)


@pytest.mark.parametrize("kind", KINDS)
def test_one_buffer_of_the_caller(kind: str) -> None:
    """Bound to both by reference, in runs and in calls; a part of it, or a shifted one, is refused."""
    session = lb.Session(lb.compile(scattered(kind)))
    memory = np.zeros((ROWS + 1, WIDTH), np.float32)
    buffer, new = memory[:ROWS], np.ones((NEW, WIDTH), np.float32)
    session.set_input_zero_copy("before", buffer)
    session.set_output_zero_copy("after", buffer)
    session.set_input("at", indices(kind, 1))
    session.set_input("new", new)
    session.run()
    expected = np.zeros_like(buffer)
    expected[1 : 1 + NEW] = 1
    np.testing.assert_array_equal(buffer, expected)
    session(buffer, indices(kind, 7), new, out=[buffer])
    expected[7 : 7 + NEW] = 1
    np.testing.assert_array_equal(buffer, expected)
    with pytest.raises(lb.InputError, match="the same memory from the same byte on"):
        session.set_output_zero_copy("after", memory[1:])
    with pytest.raises(lb.InputError, match="the same memory from the same byte on"):
        session(buffer, indices(kind, 7), new, out=[memory[1:]])


MOVING = {
    "Identity": model([helper.make_node("Identity", ["x"], ["y"])], {"x": (4, 8)}, {"y": (4, 8)}),
    "Transpose": model([helper.make_node("Transpose", ["x"], ["y"])], {"x": (4, 8)}, {"y": (8, 4)}),
    "Concat": model([helper.make_node("Concat", ["x", "n"], ["y"], axis=1)], {"x": (4, 8), "n": (4, 1)}, {"y": (4, 9)}),
    "ScatterND": scattered("ScatterND"),
}


@pytest.mark.parametrize("name", MOVING)
def test_kernels_that_only_move_are_counted_and_can_be_forbidden(name: str) -> None:
    session = lb.Session(lb.compile(MOVING[name]))
    for spec in session.inputs:
        session.set_input(spec.name, np.zeros(spec.shape, spec.dtype))
    with lb.no_copies(), lb.ledger() as moves:
        session.run()
    largest = max(spec.nbytes for spec in session.inputs)
    assert moves.total_bytes == 0 and moves.kernel_bytes >= largest and len({m.cause for m in moves}) == 1
    with lb.no_copies(kernels=True), pytest.raises(lb.CopyForbiddenError, match=f"a kernel would move {largest} bytes"):
        session.run()
    session.run()


def test_a_kernel_that_computes_is_no_move() -> None:
    session = lb.Session(lb.compile(chain()))
    session.set_input("x", np.ones((4, 8), np.float32))
    with lb.no_copies(kernels=True):
        session.run()


def test_one_buffer_of_the_caller_where_sizes_are_open() -> None:
    nodes = [helper.make_node("ScatterND", ["before", "at", "new"], ["after"])]
    inputs = {"before": (ROWS, WIDTH), "at": (("N", 1), TensorProto.INT64), "new": ("N", WIDTH)}
    facts = {name: fact if isinstance(fact[0], tuple) else (fact, TensorProto.FLOAT) for name, fact in inputs.items()}
    session = lb.Session(lb.compile(model(nodes, facts, {"after": (ROWS, WIDTH)})))
    buffer = np.zeros((ROWS, WIDTH), np.float32)
    expected = buffer.copy()
    for count in (1, 3, 20, 1):
        at, new = np.arange(count)[:, None] % ROWS, np.full((count, WIDTH), count, np.float32)
        session.set_input("at", at)
        session.set_input("new", new)
        session.set_input_zero_copy("before", buffer)
        session.set_output_zero_copy("after", buffer)
        with lb.no_copies(kernels=True):
            session.run()
            session(buffer, at, new, out=[buffer])
        expected[at[:, 0]] = count
        np.testing.assert_array_equal(buffer, expected)


def test_one_array_bound_as_past_and_present_as_onnxruntime_takes_it() -> None:
    import landbridge.onnxruntime as facade

    session = facade.InferenceSession(scattered("ScatterND").SerializeToString())
    value = facade.OrtValue.ortvalue_from_numpy(np.zeros((ROWS, WIDTH), np.float32))
    binding = session.io_binding()
    binding.bind_ortvalue_input("before", value)
    binding.bind_cpu_input("at", indices("ScatterND", 2))
    binding.bind_cpu_input("new", np.ones((NEW, WIDTH), np.float32))
    binding.bind_ortvalue_output("after", value)
    session.run_with_iobinding(binding)
    expected = np.zeros((ROWS, WIDTH), np.float32)
    expected[2 : 2 + NEW] = 1
    np.testing.assert_array_equal(value.numpy(), expected)


def test_it_is_in_the_file(tmp_path: Path) -> None:
    executable = lb.compile(scattered("ScatterND"))
    assert executable.main.aliases == (("after", "before"),)
    executable.save(tmp_path / "state.lbx")
    assert lb.load(tmp_path / "state.lbx").main.aliases == (("after", "before"),)


def chain() -> ModelProto:
    """``y`` is twice ``x``, and ``z`` its sum with what ``y`` is."""
    nodes = [
        helper.make_node("Add", ["x", "x"], ["y"], name="twice"),
        helper.make_node("Neg", ["y"], ["z"], name="neg"),
    ]
    return model(nodes, {"x": (4, 8)}, {"y": (4, 8), "z": (4, 8)})


def test_requested_where_a_kernel_reads_each_element_where_it_writes_it() -> None:
    graph = model([helper.make_node("Add", ["x", "x"], ["y"])], {"x": (4, 8)}, {"y": (4, 8)})
    buffer = np.ones((4, 8), np.float32)
    plain = lb.Session(lb.compile(graph))
    plain.set_input_zero_copy("x", buffer)
    with pytest.raises(lb.InputError, match=r"alias=\{'y': 'x'\}"):
        plain.set_output_zero_copy("y", buffer)
    session = lb.Session(lb.compile(graph, alias={"y": "x"}))
    session.bind_state("y", "x")
    session.set_input("x", buffer)
    session.run()
    session.run()
    assert session.get_output("y").data_address == session.get_input("x").data_address
    np.testing.assert_array_equal(np.asarray(session.get_output("y")), 4 * buffer)


@pytest.mark.parametrize(
    ("nodes", "why"),
    [
        (
            [("Transpose", ["x"], ["y"], {"name": "turn"})],
            r"node 'turn' \(Transpose\) reads elements of 'x' elsewhere than where it writes 'y'; legal",
        ),
        ([("MatMul", ["x", "w"], ["y"], {"name": "mix"})], r"node 'mix.* \(MatMul.*\) reads elements of 'x' elsewhere"),
        (
            [("MatMul", ["w", "w"], ["y"], {"name": "first"}), ("MatMul", ["y", "x"], ["z"], {"name": "later"})],
            r"node 'later' \(MatMul\) reads 'x' after node 'first' \(MatMul\) has begun to write 'y'; let it read 'y'",
        ),
    ],
)
def test_what_cannot_be_proved_is_refused_with_the_node(nodes: list[Any], why: str) -> None:
    made = [helper.make_node(kind, inputs, outputs, **more) for kind, inputs, outputs, more in nodes]
    outputs = {name: (8, 8) for node in made for name in node.output}
    graph = model(made, {"x": (8, 8), "w": (8, 8)}, outputs)
    with pytest.raises(lb.CompileError, match=why):
        lb.compile(graph, alias={"y": "x"})


def test_what_is_requested_comes_before_what_is_found() -> None:
    """An output that would take the input by itself leaves it to the one that is named."""
    made = model(
        [helper.make_node("ScatterND", ["x", "at", "new"], ["a"]), helper.make_node("Neg", ["a"], ["b"])],
        {"x": (8, 4), "at": ((2, 1), TensorProto.INT64), "new": (2, 4)},
        {"a": (8, 4), "b": (8, 4)},
    )
    assert dict(lb.compile(made).main.aliases) == {"a": "x"}
    assert dict(lb.compile(made, alias={"b": "x"}).main.aliases) == {"b": "x"}


def test_names_and_shapes_of_aliases_are_checked() -> None:
    graph = chain()
    with pytest.raises(lb.CompileError, match="there is no output 'q'; legal: y, z"):
        lb.compile(graph, alias={"q": "x"})
    with pytest.raises(lb.CompileError, match="there is no input 'y'; legal: x"):
        lb.compile(graph, alias={"z": "y"})
    with pytest.raises(lb.CompileError, match="two outputs the memory of input 'x'"):
        lb.compile(graph, alias={"y": "x", "z": "x"})
    with pytest.raises(lb.InputError, match="alias= takes"):
        lb.compile(graph, alias=["y"])  # type: ignore[arg-type]
    other = model([helper.make_node("Cast", ["x"], ["y"], to=TensorProto.INT32)], {"x": (4,)}, {"y": ((4,), 6)})
    with pytest.raises(
        lb.CompileError, match=r"the one is int32\[4\], by node 'y' \(Cast\), and the other float32\[4\]"
    ):
        lb.compile(other, alias={"y": "x"})


@pytest.mark.sample(7)
@pytest.mark.parametrize("seed", range(60))
def test_random_histories(seed: int) -> None:
    """Whatever is put where: as numpy has it, of a state as of two buffers, with reductions and repeated indices."""
    rng = np.random.default_rng(seed)
    reduction = ["none", "add", "max"][seed % 3]
    count = int(rng.integers(1, 30))
    shape = (int(rng.integers(1, 40)), *rng.integers(1, 20, rng.integers(0, 3)).tolist())
    nodes = [helper.make_node("ScatterND", ["before", "at", "new"], ["after"], reduction=reduction)]
    facts = {"before": shape, "at": ((count, 1), TensorProto.INT64), "new": (count, *shape[1:])}
    session = lb.Session(lb.compile(model(nodes, facts, {"after": shape})), num_threads=1 + seed % 2)
    session.bind_state("after", "before")
    expected = rng.integers(-9, 9, shape).astype(np.float32)
    session.set_input("before", expected)
    for _ in range(4):
        at = rng.integers(-shape[0], shape[0], (count, 1))
        new = rng.integers(-9, 9, (count, *shape[1:])).astype(np.float32)
        session.set_input("at", at)
        session.set_input("new", new)
        session.run()
        for where, value in zip(at[:, 0], new, strict=True):
            combined = {"add": expected[where] + value, "max": np.maximum(expected[where], value)}
            expected[where] = combined.get(reduction, value)
        np.testing.assert_array_equal(np.asarray(session.get_output("after")), expected)


def test_a_refusal_names_a_fused_kernel_by_all_of_its_operators_and_a_concat_by_its_node() -> None:
    made = model(
        [helper.make_node("Transpose", ["x"], ["t"]), helper.make_node("Add", ["t", "w"], ["y"], name="adds")],
        {"x": (4, 4), "w": (4, 4)},
        {"y": (4, 4)},
    )
    with pytest.raises(lb.CompileError, match=r"node 't\+adds' \(Transpose\+Add\) reads elements of 'x' elsewhere"):
        lb.compile(made, alias={"y": "x"})
    before = model([helper.make_node("Concat", ["new", "x"], ["y"], axis=0)], {"x": (4,), "new": (4,)}, {"y": (8,)})
    why = (
        r"float32\[8\], by node 'y' \(Concat\), and the other float32\[4\]; .* the input and what is new, in this order"
    )
    with pytest.raises(lb.CompileError, match=why):
        lb.compile(before, alias={"y": "x"})


def test_operators_of_nodes_are_recorded_until_aliases_are_proved(tmp_path: Path) -> None:
    for name, alias in (("without", None), ("with", {"z": "x"})):
        lb.compile(chain(), alias=alias, dump=tmp_path / name)
        stages = sorted((tmp_path / name).glob("*.mlir"))
        has = {file.name[3:] for file in stages if "lb.node_types" in file.read_text()}
        assert ("import.mlir" in has) == (alias is not None) and not has & {"alias.mlir", "plan.mlir"}
