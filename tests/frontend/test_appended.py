"""Loops that only append to what they carry: it is collected as rows are, and the program is whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, parser

import landbridge as lb
from landbridge.executable.segments import segments_of

Array = np.ndarray[Any, Any]


def _model(signature: str, outputs: str, body: str) -> ModelProto:
    text = f"""<ir_version: 8, opset_import: ["" : 17]> g ({signature}) => ({outputs})
    {{ go = Constant<value = bool {{1}}>() {body} }}"""
    return parser.parse_model(text)


#: Inputs, outputs, and the Loop, of ``n`` trips.
WHOLE = {
    "rows": (
        "float[2] x, int64 n",
        "float[K] y",
        """y = Loop(n, go, x) <body = b (int64 i, bool c, float[P] a) => (bool d, float[Q] e)
           { d = Identity(c) f = Cast<to=1>(i) p = Add(x, f) e = Concat<axis=0>(a, p) }>""",
    ),
    "columns, two at once": (
        "float[2,3] x, int64 n",
        "float[2,K] y",
        """y = Loop(n, go, x) <body = b (int64 i, bool c, float[2,P] a) => (bool d, float[2,Q] e)
           { d = Identity(c) f = Cast<to=1>(i) p = Mul(x, f) e = Concat<axis=-1>(a, p, x) }>""",
    ),
    "a state beside it, and rows": (
        "float[3] x, int64 n",
        "float[3] y, float[K] z, float[T,3] w",
        """y, z, w = Loop(n, go, x, x) <body = b (int64 i, bool c, float[3] s, float[P] a)
           => (bool d, float[3] t, float[Q] e, float[3] r)
           { d = Identity(c) t = Add(s, x) e = Concat<axis=0>(a, t) r = Mul(t, x) }>""",
    ),
}
#: As ``WHOLE``, of bodies that do more with what grows, which run trip by trip.
BY_TRIPS = {
    "it is read": (
        "float[2] x, int64 n",
        "float[K] y",
        """y = Loop(n, go, x) <body = b (int64 i, bool c, float[P] a) => (bool d, float[Q] e)
           { d = Identity(c) p = ReduceMean<keepdims=1>(a) e = Concat<axis=0>(a, p) }>""",
    ),
    "it is put behind": (
        "float[2] x, int64 n",
        "float[K] y",
        """y = Loop(n, go, x) <body = b (int64 i, bool c, float[P] a) => (bool d, float[Q] e)
           { d = Identity(c) f = Cast<to=1>(i) p = Add(x, f) e = Concat<axis=0>(p, a) }>""",
    ),
    "it is appended to itself": (
        "float[2] x, int64 n",
        "float[K] y",
        """y = Loop(n, go, x) <body = b (int64 i, bool c, float[P] a) => (bool d, float[Q] e)
           { d = Identity(c) e = Concat<axis=0>(a, a) }>""",
    ),
    "what a trip makes is a row too": (
        "float[2] x, int64 n",
        "float[K] y, float[T] z",
        """y, z = Loop(n, go, x) <body = b (int64 i, bool c, float[P] a) => (bool d, float[Q] e, float r)
           { d = Identity(c) e = Concat<axis=0>(a, x) r = ReduceSum<keepdims=0>(e) }>""",
    ),
}


def _compare(model: ModelProto, trips: tuple[int, ...], shape: tuple[int, ...]) -> lb.Executable:
    program = lb.compile(model)
    session, reference = lb.Session(program), onnxruntime.InferenceSession(model.SerializeToString())
    for n in trips:
        feeds = {"x": np.random.default_rng(n).standard_normal(shape).astype(np.float32), "n": np.array(n)}
        found = session(*(feeds[spec.name] for spec in program.main.inputs))
        for value, want in zip(found, reference.run(None, feeds), strict=True):
            # Means and sums of up to 40 numbers in another order; all else is exact.
            np.testing.assert_allclose(np.asarray(value), want, rtol=1e-5, atol=1e-5)
    return program


@pytest.mark.parametrize("name", WHOLE)
def test_what_is_only_appended_to_is_no_program_by_itself(name: str) -> None:
    signature, outputs, body = WHOLE[name]
    shape = tuple(map(int, signature.partition("[")[2].partition("]")[0].split(",")))
    trips = (1, 3, 40) if "w" in outputs else (0, 1, 3, 40)
    program = _compare(_model(signature, outputs, body), trips, shape)
    assert not segments_of(program)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", BY_TRIPS)
def test_what_is_read_too_grows_from_trip_to_trip(name: str) -> None:
    trips = (1, 3, 8)
    program = _compare(_model(*BY_TRIPS[name]), trips, (2,))
    assert segments_of(program)
