"""Open dimensions of two inputs that are equal in one run, and of which one is 1 in another."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

import landbridge as lb
from landbridge.errors import ShapeError

RNG = np.random.default_rng(4)


def _model(inputs: str, outputs: str, body: str) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> g ({inputs}) => ({outputs}) {{ {body} }}')


def _drawn(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


CASES = {
    "mask": (
        "float[b,s,h] x, float[mb,s,1] z",
        "y = Mul(x,z)",
        [((2, 3, 4), (2, 3, 1)), ((2, 3, 4), (1, 3, 1)), ((1, 3, 4), (5, 3, 1))],
    ),
    "row": ("float[b,n] x, float[n2] z", "y = Add(x,z)", [((2, 3), (n,)) for n in (3, 1)]),
    "twice": (
        "float[b,n] x, float[c,n] z",
        "a = Add(x,z) y = Mul(a, x)",
        [((2, 3), (2, 3)), ((1, 3), (2, 3)), ((2, 3), (1, 3))],
    ),
    "two pairs": (
        "float[b,s] x, float[c,t] z",
        "y = Sub(x,z)",
        [((2, 3), (2, 3)), ((2, 3), (1, 3)), ((2, 3), (2, 1)), ((1, 3), (2, 1)), ((1, 1), (4, 5))],
    ),
    "product": (
        "float[B,3,4] x, float[B2,4,5] z",
        "y = MatMul(x,z)",
        [((2, 3, 4), (2, 4, 5)), ((2, 3, 4), (1, 4, 5)), ((1, 3, 4), (2, 4, 5))],
    ),
    "dots": (
        "float[A,3,4] x, float[B,4,5] z",
        'y = Einsum<equation="...ij,...jk->...ik">(x,z)',
        [((2, 3, 4), (2, 4, 5)), ((2, 3, 4), (1, 4, 5))],
    ),
    "slope": ("float[n,c] x, float[d] z", "y = PRelu(x,z)", [((2, 3), (3,)), ((2, 3), (1,))]),
    "C of Gemm": ("float[3,4] x, float[k] z", "w = Transpose(x) y = Gemm(x,w,z)", [((3, 4), (3,)), ((3, 4), (1,))]),
    "largest": ("float[b,s] x, float[c,s] z", "y = Max(x,z)", [((2, 3), (2, 3)), ((2, 3), (1, 3))]),
    "known batch": ("float[4,s] x, float[c,s] z", "y = Add(x,z)", [((4, 3), (4, 3)), ((4, 3), (1, 3))]),
    "mask of scores": (
        "float[b,s,8] x, float[m,k,t] z",
        "k = Transpose<perm=[0,2,1]>(x) w = MatMul(x,k) c = Add(w,z) p = Softmax<axis=-1>(c) y = MatMul(p,x)",
        [((2, 3, 8), (2, 3, 3)), ((2, 3, 8), (1, 1, 3)), ((2, 3, 8), (2, 1, 1))],
    ),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", CASES)
def test_both_runs_work(name: str, tmp_path: Path) -> None:
    inputs, body, runs = CASES[name]
    model = _model(inputs, "float[o1, o2] y", body)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    executable = lb.compile(model)
    executable.save(tmp_path / "both.lbx")
    session = lb.Session(lb.load(tmp_path / "both.lbx"), num_threads=1)
    reference = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for x_shape, z_shape in runs:
        x, z = _drawn(*x_shape), _drawn(*z_shape)
        (wanted,) = reference.run(None, {"x": x, "z": z})
        (found,) = session(x, z)
        assert found.shape == wanted.shape
        np.testing.assert_allclose(np.asarray(found), wanted, 1e-4, 1e-5)
    assert not executable.main.guards  # the first program takes them as equal
    ones = [program for program in executable.programs.values() if program.guards]
    assert len(ones) == 1  # however many extents broadcast


@pytest.mark.parametrize("shapes", [((0, 3), (1, 3)), ((1, 3), (0, 3)), ((0, 3), (0, 3))])
def test_one_element_broadcasts_to_none(shapes: tuple[tuple[int, ...], ...]) -> None:
    session = lb.Session(lb.compile(_model("float[a, 3] x, float[b, 3] z", "float[c, 3] y", "y = Add(x, z)")))
    assert session(*(_drawn(*shape) for shape in shapes))[0].shape == (0, 3)
    with pytest.raises(ShapeError) as refused:
        session(_drawn(2, 3), _drawn(0, 3))
    assert "'a' is 2 by axis 0 of input 'x' and 0 by axis 0 of input 'z'; they must be equal" in str(refused.value)
    assert str(refused.value).count("axis 0 of input 'z' is 0") == 1  # once, of however many programs


def test_extents_that_do_not_broadcast_are_named() -> None:
    session = lb.Session(lb.compile(_model(CASES["mask"][0], "float[b,s,h] y", CASES["mask"][1])))
    with pytest.raises(ShapeError) as refused:
        session(_drawn(3, 3, 4), _drawn(2, 3, 1))
    assert "'b' is 3 by axis 0 of input 'x' and 2 by axis 0 of input 'z'; they must be equal" in str(refused.value)
    assert "y: axis 0 of operand 1, which broadcasts, is 2 with mb=2, b=3; 3 is legal" in str(refused.value)


def test_what_must_not_broadcast_is_refused() -> None:
    """A slope of several elements for one channel."""
    session = lb.Session(lb.compile(_model(CASES["slope"][0], "float[n,c] y", CASES["slope"][1])))
    with pytest.raises(ShapeError, match="axis 0 of slope, which broadcasts, is 3"):
        session(_drawn(2, 1), _drawn(3))


def test_equal_by_a_rule_needs_no_second_program() -> None:
    """The product after it demands that the two dimensions are equal, so no run can have another."""
    executable = lb.compile(
        _model(
            "float[b,s] x, float[c,s] z", "float[b,b] y", "a = Add(x,z) t = Transpose(z) w = MatMul(a,t) y = Add(w, w)"
        )
    )
    body = "a = Add(x,z) k = Transpose(x) w = MatMul(z,k) u = MatMul(k, z) v = MatMul(a,u) y = Add(v,a)"
    executable = lb.compile(_model("float[b,s] x, float[c,s] z", "float[b,s] y", body))
    assert not any(program.guards for program in executable.programs.values())


def test_extents_of_one_image_are_taken_as_equal() -> None:
    """W and what two halves of it make differ for odd W, of which the program is not."""
    body = (
        "zero = Constant<value = int64[1] {0}>() one = Constant<value = int64[1] {1}>() "
        "two = Constant<value = int64[1] {2}>() end = Constant<value = int64[1] {1000000000}>() "
        "a = Slice(x, zero, end, zero, two) b = Slice(x, one, end, zero, two) y = Add(a, b)"
    )
    executable = lb.compile(_model("float[n, 4] x", "float[m, 4] y", body))
    assert executable.dimensions["n"].multiple_of == 2
    assert len(executable.programs) == 1
