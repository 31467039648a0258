"""Decoders whose past has no positions at first: as exporters write them, they run from the first step on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import landbridge as lb

Feeds = Mapping[str, np.ndarray[Any, Any]]
HEADER = '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>'
ATTENTION = (
    "nk = Concat <axis = 2> (pk, k) nv = Concat <axis = 2> (pv, v) kt = Transpose <perm = [0, 1, 3, 2]> (nk) "
    "s = MatMul (q, kt)"
)
MERGED = (
    "nk, y = If (u) <then_branch = t () => (float[1,2,T,8] a, float[1,2,A,B] b) "
    "{ a = Concat <axis = 2> (pk, k) at = Transpose <perm = [0,1,3,2]> (a) ab = MatMul (k, at) b = Softmax (ab) }, "
    "else_branch = e () => (float[1,2,T,8] c, float[1,2,C,D] d) "
    "{ c = Identity (k) ct = Transpose <perm = [0,1,3,2]> (k) cd = MatMul (k, ct) d = Softmax (cd) }>"
)


def agree(text: str, runs: list[Feeds]) -> None:
    model = onnx.parser.parse_model(f"{HEADER} {text}")
    reference = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    program = lb.compile(model)
    session = lb.Session(program)
    for feeds in runs:
        found = session(*(feeds[spec.name] for spec in program.main.inputs))
        for got, wanted in zip(found, reference.run(None, feeds), strict=True):
            assert np.asarray(got).shape == wanted.shape
            np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-4, atol=1e-5)


def drawn(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


def step(batch: int, new: int, past: int) -> dict[str, np.ndarray[Any, Any]]:
    feeds = {name: drawn(batch, 2, new, 8) for name in "qkv"}
    feeds |= {name: drawn(batch, 2, past, 8) for name in ("pk", "pv")}
    return {**feeds, "mask": np.ones((batch, new + past), np.float32)}


STEPS = [(1, 3, 0), (1, 1, 3), (2, 1, 4), (2, 5, 0)]
INPUTS = "float[B,2,S,8] q, float[B,2,S,8] k, float[B,2,S,8] v, float[B,2,P,8] pk, float[B,2,P,8] pv"
OUTPUTS = "float[B,2,S,8] y, float[B,2,T,8] nk, float[B,2,T,8] nv"


def test_attention() -> None:
    text = f"g ({INPUTS}) => ({OUTPUTS}) {{ {ATTENTION} p = Softmax (s) y = MatMul (p, nv) }}"
    runs = [step(*sizes) for sizes in STEPS]
    agree(text, [{name: feeds[name] for name in ("q", "k", "v", "pk", "pv")} for feeds in runs])


def test_attention_with_a_mask_of_all_positions() -> None:
    nodes = (
        "i = Constant <value = int64[2] {1, 2}> () m = Unsqueeze (mask, i) sm = Add (s, m) p = Softmax (sm) "
        "y = MatMul (p, nv)"
    )
    text = f"g ({INPUTS}, float[B,total] mask) => ({OUTPUTS}) {{ {ATTENTION} {nodes} }}"
    agree(text, [step(*sizes) for sizes in STEPS])


@pytest.mark.parametrize("names", [("B", "S", "P"), ("B", "S", "x", "z", "P")])
def test_other_dimensions_before_it(names: tuple[str, ...]) -> None:
    """However many dimensions there are besides, each of the first alone may be 0."""
    more = "".join(f", float[{name}] u{name}" for name in names[2:-1])
    text = f"g (float[B,S] k{more}, float[B,P] pk) => (float[B,T] y) {{ y = Concat <axis = 1> (pk, k) }}"
    unused = {f"u{name}": drawn(2) for name in names[2:-1]}
    agree(text, [{"k": drawn(1, s), "pk": drawn(1, p), **unused} for s, p in ((3, 0), (1, 3), (1, 4))])


def test_where_an_input_says_whether_there_is_a_past() -> None:
    """The branches are programs of their own, of other shapes, and each plans memory of its own sizes alone."""
    text = f"g (float[1,2,S,8] k, float[1,2,P,8] pk, bool[1] u) => (float[1,2,T,8] nk, float[1,2,A,D] y) {{ {MERGED} }}"
    sizes = ((3, 0, False), (1, 3, True), (1, 4, True), (4, 2, False), (3, 0, True))
    agree(text, [{"k": drawn(1, 2, s, 8), "pk": drawn(1, 2, p, 8), "u": np.array([u])} for s, p, u in sizes])


SEPARATE_DIMENSIONS = (
    "float[B,2,S,8] q, float[B,2,S,8] k, float[B,2,S,8] v, float[B,2,p0,8] pk, float[B,2,p1,8] pv, "
    "float[B,2,p2,8] pk2, float[B,2,p3,8] pv2"
)
LAYERS = (
    f"{ATTENTION} p = Softmax (s) y0 = MatMul (p, nv) "
    "nk2 = Concat <axis = 2> (pk2, k) nv2 = Concat <axis = 2> (pv2, v) "
    "kt2 = Transpose <perm = [0, 1, 3, 2]> (nk2) s2 = MatMul (y0, kt2) p2 = Softmax (s2) y = MatMul (p2, nv2)"
)


@pytest.mark.parametrize("cuts", [False, True])
def test_pasts_of_several_names(cuts: bool) -> None:
    """All are without positions at once; also where data cut the program."""
    more, nodes = (", float[r,c] z", "nz = NonZero (y) z = Cast <to = 1> (nz)") if cuts else ("", "")
    outputs = f"{OUTPUTS}, float[B,2,U,8] nk2, float[B,2,U,8] nv2{more}"
    steps = [step(*sizes) for sizes in STEPS]
    runs = [{**{n: f[n] for n in ("q", "k", "v", "pk", "pv")}, "pk2": f["pk"], "pv2": f["pv"]} for f in steps]
    agree(f"g ({SEPARATE_DIMENSIONS}) => ({outputs}) {{ {LAYERS} {nodes} }}", runs)


@pytest.mark.parametrize("sizes", [(3, 0), (1, 3)])
def test_attention_operators(sizes: tuple[int, int]) -> None:
    text = (
        "g (float[B,S,16] q, float[B,S,16] k, float[B,S,16] v, float[B,2,P,8] pk, float[B,2,P,8] pv) => "
        "(float[B,S,16] y, float[B,2,T,8] nk, float[B,2,T,8] nv) "
        "{ y, nk, nv = com.microsoft.MultiHeadAttention <num_heads = 2> (q, k, v, , , , pk, pv) }"
    )
    new, past = sizes
    feeds = {name: drawn(1, new, 16) for name in "qkv"} | {name: drawn(1, 2, past, 8) for name in ("pk", "pv")}
    agree(text, [feeds])
