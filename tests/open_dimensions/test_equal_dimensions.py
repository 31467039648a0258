"""Dimensions that inputs name differently and that an operator needs equal: one dimension, which each run tests."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

import landbridge as lb
from landbridge.errors import ShapeError
from landbridge.frontend.onnx import open_ranges

RNG = np.random.default_rng(3)


def _model(inputs: str, outputs: str, body: str) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> g ({inputs}) => ({outputs}) {{ {body} }}')


def _floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def _bytes(*shape: int) -> np.ndarray:
    return RNG.integers(0, 255, shape, np.uint8)


def _expect(model: onnx.ModelProto, session: lb.Session, given: dict[str, np.ndarray]) -> None:
    reference = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (wanted,) = reference.run(None, given)
    (found,) = session(*(given[spec.name] for spec in session.inputs))
    np.testing.assert_allclose(np.asarray(found), wanted, 1e-4, 1e-5)


CASES = {
    "product": ("float[N,C] x, float[M,K] z", "float[N,K] y", "y = MatMul(x,z)", _floats(3, 4), _floats(4, 2)),
    "batches": (
        "float[B,N,C] x, float[B2,M,K] z", "float[B,N,K] y", "y = MatMul(x,z)", _floats(2, 3, 4), _floats(2, 4, 5)
    ),
    "bytes": ("uint8[N,C] x, uint8[M,K] z", "int32[N,K] y", "y = MatMulInteger(x,z)", _bytes(3, 4), _bytes(4, 2)),
    "transposed": (
        "float[C,N] x, float[K,M] z", "float[N,K] y", "y = Gemm<transA=1, transB=1>(x,z)", _floats(4, 3), _floats(2, 4)
    ),
    "einsum": (
        "float[N,C] x, float[M,K] z", "float[N,K] y", 'y = Einsum<equation="ij,jk->ik">(x,z)', _floats(3, 4),
        _floats(4, 2),
    ),
    "unnamed": (
        "float[?,?] x, float[?,?] z", "float[?,?,?] y", 'y = Einsum<equation="bi,bj->bij">(x,z)', _floats(3, 4),
        _floats(3, 2),
    ),
    "dots": (
        "float[A,N,C] x, float[B,M,K] z", "float[A,N,K] y", 'y = Einsum<equation="...ij,...jk->...ik">(x,z)',
        _floats(2, 3, 4), _floats(2, 4, 2),
    ),
    "scale": ("float[n,h] x, float[h2] z", "float[n,h] y", "y = LayerNormalization(x,z)", _floats(4, 3), _floats(3)),
    "slope": ("float[n,c] x, float[c2] z", "float[n,c] y", "y = PRelu(x,z)", _floats(2, 3), _floats(3)),
    "diagonal": (
        "float[n,m] x, float[n] z", "float[n] y", 'y = Einsum<equation="ii,i->i">(x,z)', _floats(3, 3), _floats(3)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_extents_that_have_to_be_equal(name: str) -> None:
    inputs, outputs, body, x, z = CASES[name]
    model = _model(inputs, outputs, body)
    session = lb.Session(lb.compile(model), num_threads=1)
    _expect(model, session, {"x": x, "z": z})
    with pytest.raises(ShapeError, match=r"by axis . of input '.' and .* by axis . of input"):
        session(x, np.tile(z, [2] * z.ndim))


ATTENTION = (
    "float[b,s,8] q, float[b2,p,8] k, float[b3,r,8] v",
    "float[b,s,8] y",
    "kt = Transpose<perm=[0,2,1]>(k) w = MatMul(q,kt) a = Softmax<axis=-1>(w) y = MatMul(a,v)",
)


@pytest.mark.parametrize("dims", [None, {"p": "1..64", "r": "1..32"}])
def test_keys_and_values_of_two_names(dims: dict[str, str] | None) -> None:
    model = _model(*ATTENTION)
    executable = lb.compile(model, dims=dims)
    session = lb.Session(executable, num_threads=1)
    for length in (1, 5, 9):
        given = {"q": _floats(2, 3, 8), "k": _floats(2, length, 8), "v": _floats(2, length, 8)}
        _expect(model, session, given)
    with pytest.raises(ShapeError, match="'p' is 9 by axis 1 of input 'k' and 3 by axis 1 of input 'v'"):
        session(given["q"], given["k"], given["v"][:, :3])
    assert executable.dimensions["p"].high == (None if dims is None else 32)  # what both ranges have


def test_a_dimension_that_is_a_sum_of_others() -> None:
    """The mask is as long as past and present keys together."""
    model = _model(
        "float[b,s,8] q, float[b,p,8] past, float[b,k,8] now, float[b,s,t] mask, float[b,u,8] v",
        "float[b,s,8] y",
        "keys = Concat<axis=1>(past, now) kt = Transpose<perm=[0,2,1]>(keys) w = MatMul(q,kt) m = Add(w, mask) "
        "a = Softmax<axis=-1>(m) y = MatMul(a, v)",
    )
    session = lb.Session(lb.compile(model), num_threads=1)
    for past, now in ((4, 1), (2, 3)):
        given = {
            "q": _floats(2, 3, 8),
            "past": _floats(2, past, 8),
            "now": _floats(2, now, 8),
            "mask": _floats(2, 3, past + now),
            "v": _floats(2, past + now, 8),
        }
        _expect(model, session, given)
    given["v"] = given["v"][:, :4]
    with pytest.raises(
        ShapeError, match=r"axis 1 of input 'v' is 4; it must be .*, 5 with .*=2 by axis 1 of input 'past'"
    ):
        session(*(given[spec.name] for spec in session.inputs))


def test_one_walk_finds_all_equalities(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many names there are, they are found by one import, and the next one begins with them."""
    count = 24
    names = "".join(f", float[k{i}, m{i}] w{i}" for i in range(count))
    body = " ".join(f"x{i + 1} = MatMul(x{i}, w{i})" for i in range(count))
    model = _model(f"float[n, k] x0{names}", f"float[n, m] x{count}", body)
    tried: list[object] = []
    resolved = open_ranges.resolved
    monkeypatch.setattr(open_ranges, "resolved", lambda known: tried.append(known) or resolved(known))
    executable = lb.compile(model)
    assert len(tried) < count  # not one a name: two find them, the others are for up to nine choices of extents of 0
    assert len(lb.Session(executable).inputs) == count + 1


def test_weights_say_what_a_dimension_is() -> None:
    executable = lb.compile(
        _model("float[n, c] x", "float[n, c] y", "b = Constant<value = float[3] {1.0, 2.0, 3.0}>() y = Add(x, b)")
    )
    assert executable.main.inputs[0].shape[1] == 3
    assert [len(program.guards) for program in executable.programs.values()].count(0) == len(executable.programs)
