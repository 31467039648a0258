"""Loops that were while loops over a counter, against onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

import landbridge as lb


def while_loop(first: int, step: int, ends: str) -> onnx.ModelProto:
    """A state over the rows of ``x`` as a counter says, which each trip ends with ``ends``, of ``next`` and ``at``."""
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[steps,3] x, float[3] h) => (float[3] last, float[rows,3] all) {{
            shape = Shape<end=1>(x)
            zero = Constant<value_ints=[0]>()
            n = Squeeze(shape, zero)
            far = Constant<value_int=1000000>()
            from = Constant<value_int={first}>()
            begins = Less(from, n)
            at_end, last, all = Loop(far, begins, from, h) <body = b (int64 i, bool going, int64 at, float[3] s)
                => (bool on, int64 next, float[3] t, float[3] row) {{
                step = Constant<value_int={step}>()
                next = Add(at, step)
                one = Gather<axis=0>(x, at)
                sum = Add(one, s)
                t = Tanh(sum)
                row = Identity(t)
                {ends}
            }}>
        }}"""
    )


FLOATS = "a = Cast<to=1>(next) b = Cast<to=1>(n) on = Less(a, b)"
CASES = {
    "less": (0, 1, "on = Less(next, n)"),
    "greater, of floats": (0, 1, "a = Cast<to=1>(next) b = Cast<to=1>(n) on = Greater(b, a)"),
    "two counters": (0, 1, "u = Less(next, n) v = Less(i, n) on = And(u, v)"),
    "the trip's number": (0, 1, "w = Constant<value_int=1> () j = Add(i, w) on = Less(j, n)"),
    "steps of two": (0, 2, FLOATS),
    "from the second": (1, 1, FLOATS),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("case", CASES)
def test_open_steps(case: str) -> None:
    first, step, ends = CASES[case]
    model = while_loop(first, step, ends)
    executable = lb.compile(model, dims={"steps": "2.."})
    assert list(executable.dimensions) == ["steps"]
    agree(executable, model)


def agree(executable: lb.Executable, model: onnx.ModelProto) -> None:
    session = lb.Session(executable)
    peer = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(5)
    for steps in (2, 3, 8, 31):
        feeds = {"x": rng.standard_normal((steps, 3)).astype("f4"), "h": rng.standard_normal(3).astype("f4")}
        for found, wanted in zip(session(feeds).values(), peer.run(None, feeds), strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_many_steps_are_one_body() -> None:
    model = while_loop(*CASES["two counters"])
    executable = lb.compile(model, shapes={"x": (3000, 3)}, max_nodes=100)  # 3000 trips of their own have more
    feeds = {"x": np.ones((3000, 3), "f4"), "h": np.zeros(3, "f4")}
    peer = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(lb.Session(executable)(feeds)["all"], peer.run(None, feeds)[1], atol=1e-6)


def test_another_condition_counts_nothing() -> None:
    """How often squares are below a limit is no sum: how many rows there are shows when it has run."""
    model = while_loop(0, 1, "d = Mul(next, next) on = Less(d, n)")
    executable = lb.compile(model, dims={"steps": "2.."})
    assert [spec.shape[0] for spec in executable.main.outputs][1] != executable.main.inputs[0].shape[0]
    agree(executable, model)
