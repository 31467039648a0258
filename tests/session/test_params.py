"""Weights that a Session may replace: compiled as parameters, set by value, never folded or shared."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

import landbridge as lb
from landbridge.errors import CopyForbiddenError, InputError
from landbridge.executable.instructions import Call
from tests.frontend.models import FLOAT, model, value
from tests.session.place import session, where  # noqa: F401

RNG = np.random.default_rng(5)


def weights() -> dict[str, np.ndarray]:
    return {
        "conv.weight": RNG.standard_normal((20, 3, 3, 3), dtype=np.float32),
        "conv.bias": RNG.standard_normal(20, dtype=np.float32),
        "scale": RNG.standard_normal((1, 20, 1, 1), dtype=np.float32),
        "head": RNG.standard_normal((20, 7), dtype=np.float32),
    }


def network(values: dict[str, np.ndarray]) -> onnx.ModelProto:
    nodes = [
        helper.make_node("Conv", ["x", "conv.weight", "conv.bias"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Mul", ["a", "scale"], ["b"]),
        helper.make_node("Relu", ["b"], ["c"]),
        helper.make_node("GlobalAveragePool", ["c"], ["d"]),
        helper.make_node("Flatten", ["d"], ["e"]),
        helper.make_node("MatMul", ["e", "head"], ["y"]),
    ]
    return model(nodes, [value("x", (1, 3, 12, 12))], [value("y", (1, 7))], values)


def expected(values: dict[str, np.ndarray], x: np.ndarray) -> np.ndarray:
    reference = onnxruntime.InferenceSession(network(values).SerializeToString())
    return reference.run(None, {"x": x})[0]


def check(y, values, x):
    wanted = expected(values, x)
    np.testing.assert_allclose(np.asarray(y), wanted, atol=1e-4 * np.abs(wanted).max())


@pytest.mark.sample(2)
@pytest.mark.parametrize("mutable", [("conv.weight",), ("scale", "head"), ("head", *list(weights())[:3])])
def test_new_weights_give_what_a_model_with_them_gives(tmp_path, mutable):
    first, later = weights(), weights()
    lb.compile(network(first), mutable=mutable).save(tmp_path / "m.lbx")
    exe = lb.load(tmp_path / "m.lbx")
    s, x = session(exe), RNG.standard_normal((1, 3, 12, 12), dtype=np.float32)
    assert [spec.name for spec in s.params] == list(mutable)
    assert [spec.name for spec in s.inputs] == ["x"]
    check(s(x)[0], first, x)
    given = {name: later[name] for name in mutable}
    copies = {name: array.copy() for name, array in given.items()}
    s.set_params(copies)
    for array in copies.values():
        array[:] = np.nan  # by value: what the caller does later is his own
    check(s(x)[0], first | given, x)
    s.set_input_zero_copy("x", x)
    s.run()
    check(s.get_output(0), first | given, x)
    check(session(exe)(x)[0], first, x)


def test_one_of_several_parameters_and_what_get_params_shows():
    first, later = weights(), weights()
    s = session(lb.compile(network(first), mutable=("head", "scale")))
    x = RNG.standard_normal((1, 3, 12, 12), dtype=np.float32)
    s.set_params({"head": later["head"][::-1][::-1]})
    check(s(x)[0], first | {"head": later["head"]}, x)
    shown = s.get_params()
    assert list(shown) == ["head", "scale"] and all(t.readonly for t in shown.values())
    np.testing.assert_array_equal(np.asarray(shown["head"]), later["head"])
    np.testing.assert_array_equal(np.asarray(shown["scale"]), first["scale"])


def test_first_values_are_used_where_the_file_has_them(tmp_path):
    lb.compile(network(weights()), mutable=("head",)).save(tmp_path / "m.lbx")
    exe = lb.load(tmp_path / "m.lbx")
    with lb.no_copies():
        s = session(exe)
    assert s.get_params()["head"].data_address == exe.constants["parameter:head"].ctypes.data


def test_what_does_not_fit_changes_nothing():
    first = weights()
    s = session(lb.compile(network(first), mutable=("scale", "head")))
    good = np.zeros((1, 20, 1, 1), np.float32)
    for bad, reason in (
        ({"haed": good}, "did you mean 'head'"),
        ({"conv.bias": np.zeros(20, np.float32)}, r"mutable=\('conv.bias',\)"),
        ({"head": np.zeros((20, 7))}, "parameter 'head': dtype float64"),
        ({"head": np.zeros((20, 8), np.float32)}, "it takes"),
    ):
        with pytest.raises(InputError, match=reason):
            s.set_params({"scale": good, **bad})
    with lb.no_copies(), pytest.raises(CopyForbiddenError, match="set_params"):
        s.set_params({"scale": good})
    np.testing.assert_array_equal(np.asarray(s.get_params()["scale"]), first["scale"])


def test_the_ledger_shows_what_setting_costs():
    s = session(lb.compile(network(weights()), mutable=("head",)))
    with lb.ledger() as moves:
        s.set_params({"head": np.zeros((20, 7), np.float32)})
    assert [(m.cause, m.tensor, m.nbytes) for m in moves] == [("set_params", "head", 560)]


PACKED = {"first": (32, 16, 3, 3), "bias": (32,), "second": (48, 32, 1, 1), "head": (48, 32)}


def packed_weights() -> dict[str, np.ndarray]:
    return {name: RNG.standard_normal(shape, dtype=np.float32) for name, shape in PACKED.items()}


def packed_network(values: dict[str, np.ndarray]) -> onnx.ModelProto:
    """Convolutions and a matrix multiplication large enough to be given blocked weights."""
    nodes = [
        helper.make_node("Conv", ["x", "first", "bias"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "second"], ["c"]),
        helper.make_node("GlobalAveragePool", ["c"], ["d"]),
        helper.make_node("Flatten", ["d"], ["e"]),
        helper.make_node("MatMul", ["e", "head"], ["y"]),
    ]
    return model(nodes, [value("x", (1, 16, 10, 10))], [value("y", (1, 32))], values)


def test_weights_are_packed_when_they_are_set_and_not_by_each_run():
    first, later = packed_weights(), packed_weights()
    exe = lb.compile(packed_network(first), mutable=tuple(PACKED))
    x = RNG.standard_normal((1, 16, 10, 10), dtype=np.float32)
    constant = lb.compile(packed_network(first))

    def reordered(action) -> int:
        with lb.ledger() as moves:
            action()
        return moves.kernel_bytes

    made = []
    assert reordered(lambda: made.append(session(exe))) > 0
    (s,) = made
    nbytes = sum(first[name].nbytes for name in ("first", "second", "head"))
    for values in (first, later):
        if values is later:
            assert reordered(lambda: s.set_params(later)) >= nbytes
        for _ in range(3):  # what a run leaves behind must not be where packed weights are
            assert reordered(lambda: s(x)) == reordered(lambda: session(constant)(x))
            wanted = onnxruntime.InferenceSession(packed_network(values).SerializeToString()).run(None, {"x": x})[0]
            np.testing.assert_allclose(np.asarray(s(x)[0]), wanted, atol=1e-4 * np.abs(wanted).max())
    s.set_input("x", x)
    s.run()
    np.testing.assert_array_equal(np.asarray(s.get_output(0)), np.asarray(s(x)[0]))
    np.testing.assert_array_equal(np.asarray(session(exe)(x)[0]), np.asarray(session(constant)(x)[0]))


def test_weights_cross_to_their_vdevice_when_they_are_set():
    first, later = packed_weights(), packed_weights()
    proto = packed_network(first)
    for node in proto.graph.node:
        node.name = node.op_type
    targets = {"main": "llvm", "side": "llvm"}
    exe = lb.compile(proto, targets, mutable=tuple(PACKED), place={"Conv": "side", "MatMul": "side"})
    s = session(exe, devices=dict.fromkeys(targets, "cpu"))
    crossing = {array.nbytes for array in first.values()}
    with lb.ledger() as moves:
        s.set_params(later)
    assert crossing == {move.nbytes for move in moves if move.cause == "to_vdevice"}
    x = RNG.standard_normal((1, 16, 10, 10), dtype=np.float32)
    wanted = onnxruntime.InferenceSession(packed_network(later).SerializeToString()).run(None, {"x": x})[0]
    for _ in range(2):
        with lb.ledger() as moves:
            (y,) = s(x)
        assert sum(move.nbytes for move in moves if move.cause == "to_vdevice") == 4 * sum(
            # the input, the Relu's way out and back, the pool's input and output, the result
            [16 * 10 * 10, 2 * 32 * 10 * 10, 48 * 10 * 10, 48, 32]
        )
        np.testing.assert_allclose(np.asarray(y), wanted, atol=1e-4 * np.abs(wanted).max())


def test_the_kernels_are_those_of_constant_weights():
    values = packed_weights()

    def kernels(mutable) -> list[str]:
        calls = lb.compile(packed_network(values), mutable=mutable).main.instructions
        return sorted(call.name for call in calls if isinstance(call, Call) and not call.moves_bytes)

    assert kernels(()) == kernels(tuple(PACKED)) == kernels(("second",))


def test_a_weight_in_a_constant_node_and_one_listed_as_an_input():
    w, b, x = np.random.default_rng(5).standard_normal((3, 4), dtype=np.float32)
    nodes = [
        helper.make_node("Constant", [], ["w"], value=onnx.numpy_helper.from_array(w)),
        helper.make_node("Mul", ["x", "w"], ["m"]),
        helper.make_node("Add", ["m", "b"], ["y"]),
    ]
    proto = model(nodes, [value("b", (4,), FLOAT), value("x", (4,))], [value("y", (4,))], {"b": b})
    s = session(lb.compile(proto, mutable=("b", "w")))
    # One or two roundings of numbers of at most 8: a sum near 0 has no small relative error.
    np.testing.assert_allclose(np.asarray(s(x)[0]), x * w + b, rtol=0, atol=2e-6)
    s.set_params({"w": b, "b": w})
    np.testing.assert_allclose(np.asarray(s(x)[0]), x * b + w, rtol=0, atol=2e-6)


def test_names_that_are_no_weights():
    with pytest.raises(InputError, match=r"'conv.wieght', which is no weight of the model; did you mean 'conv.weight'"):
        lb.compile(network(weights()), mutable=("conv.wieght",))
    with pytest.raises(InputError, match=r"'x', which is no weight"):
        lb.compile(network(weights()), mutable=("x",))
    with pytest.raises(InputError, match="twice"):
        lb.compile(network(weights()), mutable=("head", "head"))
