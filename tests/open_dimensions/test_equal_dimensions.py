"""Dimensions that inputs name differently and that an operator needs equal: one dimension, which each run tests."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

import landbridge as lb
from landbridge.errors import ShapeError

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


@pytest.mark.sample(3)
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


def test_ranges_of_equal_dimensions_meet_whatever_they_are_multiples_of() -> None:
    executable = lb.compile(_model(*ATTENTION), dims={"p": "32..640:8", "r": "1..640:12"})
    legal = executable.dimensions["p"]
    assert (legal.low, legal.high, legal.multiple_of) == (48, 624, 24)


def test_a_name_that_became_another_is_answered_with_where_that_is() -> None:
    session = lb.Session(lb.compile(_model(*ATTENTION)))
    with pytest.raises(ShapeError, match=r"no dimension 'r'.*p \(axis 1 of 'k', axis 1 of 'v'\).*first of their names"):
        session.prepare(b=1, s=1, r=[4])
    session.prepare(b=1, s=1, p=[4])


def test_scales_of_one_element_or_one_for_each_column() -> None:
    """What a scale may be one of decides the program, of all scales."""
    model = _model(
        "uint8[N,C] x, float[s] xs, uint8[xn] xz, uint8[D,K] z, float[t] zs, uint8[zn] zz, float[u] ys, uint8[un] yz",
        "uint8[N,K] y",
        "y = QLinearMatMul(x, xs, xz, z, zs, zz, ys, yz)",
    )
    session = lb.Session(lb.compile(model), num_threads=1)
    one, zero = np.full(1, 0.5, np.float32), np.zeros(1, np.uint8)
    for columns in (1, 2):
        given = {
            "x": _bytes(3, 4) // 16, "xs": one, "xz": zero, "z": _bytes(4, 2) // 16, "ys": one * 64, "yz": zero,
            "zs": np.full(columns, 0.25, np.float32), "zz": np.full(columns, 3, np.uint8),
        }  # fmt: skip
        product = given["x"].astype(int) @ (given["z"].astype(int) - 3) * 0.5 * 0.25 / 32
        (found,) = session(*(given[spec.name] for spec in session.inputs))
        np.testing.assert_array_equal(np.asarray(found), np.clip(np.rint(product), 0, 255))


def test_indices_that_are_no_longer_than_the_data() -> None:
    """As long along other axes: the operator demands an order, which no range of one of the two has."""
    body = "a = Constant<value_ints = [1]>() i = Unsqueeze(t, a) y = GatherElements<axis = 1>(x, i)"
    session = lb.Session(lb.compile(_model("float[n, c] x, int64[m] t", "float[n, 1] y", body)), num_threads=1)
    x, at = _floats(3, 4), np.array([3, 0, 2])
    np.testing.assert_array_equal(np.asarray(session(x, at)[0])[:, 0], x[np.arange(3), at])


def test_rows_that_are_cut_into_heads() -> None:
    """The factors that are the same on both sides of a Reshape say nothing of what is cut."""
    body = "s = Constant<value_ints = [0, 0, 3, -1]>() y = Reshape(x, s)"
    executable = lb.compile(_model("float[b, t, w] x", "float[b, t, h, e] y", body))
    assert executable.dimensions["w"].multiple_of == 3
    assert not executable.main.guards
    assert lb.Session(executable)(_floats(2, 5, 6))[0].shape == (2, 5, 3, 2)


def test_keys_that_are_repeated_for_queries() -> None:
    """There are fewer heads of keys than of queries, how many fewer shows in a run."""
    body = (
        "s = Shape(q) h = Shape<start=1, end=2>(q) g = Shape<start=1, end=2>(k) r = Div(h, g) "
        "two = Constant<value_ints = [2]>() "
        "u = Unsqueeze(k, two) b = Shape<start=0, end=1>(q) t = Shape<start=2>(k) a = Concat<axis=0>(b, g, r, t) "
        "e = Expand(u, a) c = Concat<axis=0>(b, h, t) w = Reshape(e, c) v = Mul(w, w) x = Transpose<perm=[0,1,3,2]>(v) "
        "y = MatMul(q, x)"
    )
    model = _model("float[B,H,T,E] q, float[C,G,S,F] k", "float[B,H,T,S] y", body)
    session = lb.Session(lb.compile(model), num_threads=1)
    for heads in (1, 2, 4):
        _expect(model, session, {"q": _floats(1, 4, 3, 8), "k": _floats(1, heads, 5, 8)})
    with pytest.raises(ShapeError):
        session(_floats(1, 4, 3, 8), _floats(1, 3, 5, 8))


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


@pytest.mark.full
def test_one_walk_finds_all_equalities() -> None:
    """However many names there are, they are found by one walk, and those of other programs begin with them."""
    count = 24
    names = "".join(f", float[k{i}, m{i}] w{i}" for i in range(count))
    body = " ".join(f"x{i + 1} = MatMul(x{i}, w{i})" for i in range(count))
    executable = lb.compile(_model(f"float[n, k] x0{names}", f"float[n, m] x{count}", body))
    first, *others = executable.metadata["import.walks"].splitlines()
    assert first == "the model" and set(others) <= {"a program for inputs without elements"}
    assert len(others) < 10
    assert len(lb.Session(executable).inputs) == count + 1


def test_weights_say_what_a_dimension_is() -> None:
    executable = lb.compile(
        _model("float[n, c] x", "float[n, c] y", "b = Constant<value = float[3] {1.0, 2.0, 3.0}>() y = Add(x, b)")
    )
    assert executable.main.inputs[0].shape[1] == 3
    assert [len(program.guards) for program in executable.programs.values()].count(0) == len(executable.programs)
