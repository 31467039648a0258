"""Loops whose trips are taken in place: results, against onnxruntime, and when they are taken one by one instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, parser

import landbridge as lb
from landbridge.errors import OutOfMemoryError
from landbridge.session.segment_steps import ProgramPiece

Array = np.ndarray[Any, Any]


def _model(signature: str, outputs: str, loop: str) -> ModelProto:
    text = f"""<ir_version: 8, opset_import: ["" : 18]> g ({signature}) => ({outputs})
    {{ go = Constant<value = bool {{1}}>() rows = Constant<value = int64[1] {{0}}>() {loop} }}"""
    return parser.parse_model(text)


def _drawn(*shape: int) -> Array:
    return np.random.default_rng(shape[-1]).standard_normal(shape, np.float32)


#: The mean of all rows, of which one is appended in each trip, and what was appended as rows.
MEAN = """<body = b (int64 i, bool c, float[P,8] a, float[8] t) => (bool d, float[Q,8] e, float[8] u, float[8] r) {
    d = Identity(c) m = ReduceMean<keepdims=0>(a, rows) s = Add(m, t) u = Tanh(s) w = Unsqueeze(u, rows)
    e = Concat<axis=0>(a, w) r = Neg(u) }>"""
MODELS: dict[str, tuple[str, str, str, Callable[[], dict[str, Array]]]] = {
    "rows are appended and read": (
        "float[K,8] x, float[8] t, int64 n",
        "float[L,8] y, float[8] z, float[M,8] w",
        f"y, z, w = Loop(n, go, x, t) {MEAN}",
        lambda: {"x": _drawn(1, 8), "t": _drawn(8)},
    ),
    "two begin as one array, and each is read for the other": (
        "float[K,8] x, int64 n",
        "float[L,8] y, float[M,8] z",
        """y, z = Loop(n, go, x, x) <body = b (int64 i, bool c, float[P,8] a, float[O,8] b)
        => (bool d, float[Q,8] e, float[R,8] f) {
        d = Identity(c) m = ReduceMean<keepdims=1>(b, rows) e = Concat<axis=0>(a, m) k = ReduceSum<keepdims=1>(a, rows)
        s = ReduceMean<keepdims=1>(e, rows) u = Add(k, s) v = Tanh(u) f = Concat<axis=0>(b, v, m) }>""",
        lambda: {"x": _drawn(2, 8)},
    ),
    "its length is a row": (
        "float[K,8] x, int64 n",
        "float[L,8] y, float[M] z",
        """y, z = Loop(n, go, x) <body = b (int64 i, bool c, float[P,8] a) => (bool d, float[Q,8] e, float r) {
        d = Identity(c) m = ReduceMean<keepdims=1>(a, rows) e = Concat<axis=0>(a, m)
        s = Shape<start=0, end=1>(a) q = Squeeze(s) r = Cast<to=1>(q) }>""",
        lambda: {"x": _drawn(2, 8)},
    ),
    "columns are appended, and what is around is as long": (
        "float[2,K] x, float[K] t, int64 n",
        "float[2,L] y",
        """y = Loop(n, go, x) <body = b (int64 i, bool c, float[2,P] a) => (bool d, float[2,Q] e) {
        d = Identity(c) last = Constant<value = int64[1] {1}>() m = ReduceMean<keepdims=1>(a, last)
        f = Cast<to=1>(i) s = Mul(m, f) k = ReduceSum<keepdims=0>(t) v = Add(s, k) e = Concat<axis=1>(v, a) }>""",
        lambda: {"x": _drawn(2, 3), "t": _drawn(3)},
    ),
    "a condition ends it": (
        "float[K] x, int64 n",
        "float[L] y, float[M] z",
        """y, z = Loop(n, go, x) <body = b (int64 i, bool c, float[P] a) => (bool d, float[Q] e, float r) {
        r = ReduceSum<keepdims=0>(a) one = Constant<value = float[1] {0.125}>() e = Concat<axis=0>(a, one)
        most = Constant<value = float {9.0}>() d = Less(r, most) }>""",
        lambda: {"x": np.zeros(3, np.float32)},
    ),
    "it doubles": (
        "float[K] x, int64 n",
        "float[L] y",
        """y = Loop(n, go, x) <body = b (int64 i, bool c, float[P] a) => (bool d, float[Q] e) {
        d = Identity(c) b = Neg(a) e = Concat<axis=0>(a, b) }>""",
        lambda: {"x": _drawn(3)},
    ),
    "it begins with nothing": (
        "float[8] x, int64 n",
        "float[L,8] y, float[8] z, float[M,8] w",
        f"none = Constant<value = float[0,8] {{}}>() y, z, w = Loop(n, go, none, x) {MEAN.replace('Mean', 'Sum')}",
        lambda: {"x": _drawn(8)},
    ),
    "nothing grows, and a condition says how many rows there are": (
        "float[8] x, int64 n",
        "float[8] y, float[M,8] z",
        """y, z = Loop(n, go, x) <body = b (int64 i, bool c, float[8] a) => (bool d, float[8] e, float[8] r) {
        half = Constant<value = float {0.5}>() e = Mul(a, half) r = Neg(e) s = ReduceMax<keepdims=0>(e)
        least = Constant<value = float {0.0001}>() d = Greater(s, least) }>""",
        lambda: {"x": _drawn(8)},
    ),
    "a trip branches, and has a loop of its own": (
        "float[3,8] x, float[8] t, int64 n",
        "float[L,8] y",
        """zero = Constant<value = float {0.0}>() many = Constant<value = int64 {200}>()
        y = Loop(n, go, x) <body = b (int64 i, bool c, float[P,8] a) => (bool d, float[Q,8] e) {
        d = Identity(c) m = ReduceMean<keepdims=0>(a, rows) s = ReduceSum<keepdims=0>(m) p = Greater(s, zero)
        u = If(p) <then_branch = one () => (float[8] o) { o = Neg(m) },
            else_branch = other () => (float[8] q) { q = Mul(m, t) }>
        v = Loop(many, c, u) <body = inner (int64 j, bool f, float[8] g) => (bool h, float[8] k) {
            h = Identity(f) l = Sin(g) k = Add(l, m) }>
        w = Unsqueeze(v, rows) e = Concat<axis=0>(a, w) }>""",
        lambda: {"x": _drawn(3, 8), "t": _drawn(8)},
    ),
    "products of all rows with all rows": (
        "float[K,8] x, int64 n",
        "float[L,8] y",
        """y = Loop(n, go, x) <body = b (int64 i, bool c, float[P,8] a) => (bool d, float[Q,8] e) {
        d = Identity(c) t = Transpose(a) p = MatMul(a, t) q = Softmax<axis=-1>(p) s = MatMul(q, a)
        m = ReduceMean<keepdims=1>(s, rows) e = Concat<axis=0>(a, m) }>""",
        lambda: {"x": _drawn(2, 8)},
    ),
}


@pytest.fixture
def pieces_run(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The functions that were run one by one."""
    found: list[str] = []
    run = ProgramPiece.run

    def noted(self: ProgramPiece, *args: Any) -> dict[str, Any]:
        found.append(self.function.outputs[0].name)
        return run(self, *args)

    monkeypatch.setattr(ProgramPiece, "run", noted)
    yield found


def _agree(session: lb.Session, model: ModelProto, feeds: dict[str, Array]) -> None:
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    found = session(*(feeds[spec.name] for spec in session.inputs))
    for got, wanted in zip(found, expected, strict=True):
        assert got.shape == wanted.shape
        # Sums of at most some hundred numbers in another order, which later trips read.
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("threads", [1, 2])
def test_results_are_those_of_onnxruntime(name: str, threads: int, pieces_run: list[str]) -> None:
    signature, outputs, loop, feeds = MODELS[name]
    model = _model(signature, outputs, loop)
    session = lb.Session(lb.compile(model), num_threads=threads)
    most = 9 if name == "it doubles" else 150
    for n in (most, 1, 2, most):
        pieces_run.clear()
        _agree(session, model, {**feeds(), "n": np.array(n)})
        # The first is another program where it may begin with nothing; and one that is left alone.
        assert pieces_run.count("d") <= 2


def test_a_sanitized_program_takes_its_trips_in_place_too(pieces_run: list[str]) -> None:
    signature, outputs, loop, feeds = MODELS["columns are appended, and what is around is as long"]
    model = _model(signature, outputs, loop)
    session = lb.Session(lb.compile(model, sanitize=True), num_threads=1)
    _agree(session, model, {**feeds(), "n": np.array(9)})
    assert pieces_run.count("d") <= 1


def test_a_state_of_megabytes_and_one_that_needs_new_memory(pieces_run: list[str]) -> None:
    signature, outputs, loop, _ = MODELS["rows are appended and read"]
    model = _model(signature, outputs, loop)
    session = lb.Session(lb.compile(model), num_threads=1)
    for rows, n in ((1, 3), (40000, 5), (2, 200)):
        _agree(session, model, {"x": _drawn(rows, 8), "t": _drawn(8), "n": np.array(n)})
    assert pieces_run.count("d") == 3  # the first of each run


def test_results_are_the_callers() -> None:
    signature, outputs, loop, feeds = MODELS["rows are appended and read"]
    session = lb.Session(lb.compile(_model(signature, outputs, loop)))
    given = feeds()
    first = session(given["x"], given["t"], np.array(70))
    retained = [np.array(each) for each in first]
    session(given["x"] + 1, given["t"], np.array(70))
    for each, was in zip(first, retained, strict=True):
        assert (np.asarray(each) == was).all()
    assert (given["x"] == feeds()["x"]).all()


def test_memory_is_requested_of_what_a_run_needs_alone() -> None:
    """What the trips ahead would take is no reason to refuse one."""
    signature, outputs, loop, _ = MODELS["it doubles"]
    program = lb.compile(_model(signature, outputs, loop))
    session = lb.Session(program, num_threads=1, memory_limit=1 << 20)
    x = np.ones(1 << 14, np.float32)
    (y,) = session(x, np.array(3))
    assert y.shape == (1 << 17,)
    with pytest.raises(OutOfMemoryError):
        session(x, np.array(5))
    (y,) = session(x, np.array(1))
    assert y.shape == (1 << 15,)


def test_a_ledger_shows_what_kernels_move() -> None:
    signature, outputs, loop, feeds = MODELS["rows are appended and read"]
    session = lb.Session(lb.compile(_model(signature, outputs, loop)), num_threads=1)
    given = feeds()
    with lb.ledger() as moves:
        session(given["x"], given["t"], np.array(20))
    assert sum(move.nbytes for move in moves if move.tensor == "e") == 32 * sum(range(1, 21)) + 20 * 32


def test_an_open_view_of_what_is_around_is_looked_at() -> None:
    signature, outputs, loop, feeds = MODELS["columns are appended, and what is around is as long"]
    model = _model(signature, outputs, loop)
    session = lb.Session(lb.compile(model), num_threads=1)
    given = feeds()
    t = lb.empty((3,), dtype="float32")
    with t.host_view("w") as array:
        array[...] = given["t"]
    with t.host_view("r"):
        (y,) = session(given["x"], t, np.array(5))
    (z,) = session(given["x"], t, np.array(5))
    assert (np.asarray(y) == np.asarray(z)).all()


def test_rows_of_no_trip_have_the_extents_that_open_dimensions_around_say() -> None:
    model = _model(
        "float[K,3] x, int64 n",
        "float[A,3] y, float[M,B,3] r",
        """y, r = Loop(n, go, x) <body = b (int64 i, bool c, float[P,3] a) => (bool d, float[Q,3] e, float[1,3] f) {
        s = Constant<value = int64[1] {-1}>() t = Constant<value = int64[1] {1000}>()
        e = Identity(a) f = Slice(a, s, t, rows)
        k = ReduceSum<keepdims=0>(a) most = Constant<value = float {31.0}>() d = Less(k, most) }>""",
    )
    session = lb.Session(lb.compile(model))
    for n in (3, 0, 1):
        _agree(session, model, {"x": np.ones((1, 3), np.float32), "n": np.array(n)})


def test_two_open_lengths_that_a_trip_needs_equal_are_one() -> None:
    """The program of a trip does not decide on dimensions of the program around it."""
    model = _model(
        "float[J] x, float[K] z, int64 n",
        "float[L] y, float[M] w",
        """y, w = Loop(n, go, x, z) <body = b (int64 i, bool c, float[P] a, float[O] b)
        => (bool d, float[Q] e, float[R] f) {
        d = Identity(c) one = Constant<value = float[1] {0.125}>()
        e0 = Concat<axis=0>(a, one) f0 = Concat<axis=0>(b, one) e = Neg(e0) f = Add(f0, e0) }>""",
    )
    session = lb.Session(lb.compile(model))
    for n in (4, 0, 1):
        _agree(session, model, {"x": _drawn(3), "z": 2 * _drawn(3), "n": np.array(n)})
    with pytest.raises(lb.ShapeError, match="must be equal"):
        session(_drawn(3), _drawn(2), np.array(1))
