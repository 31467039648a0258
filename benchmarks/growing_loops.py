"""Loops whose bodies read a tensor that each iteration makes longer: processor time of an iteration, on one thread,
compared with onnxruntime.

python benchmarks/growing_loops.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import onnxruntime
from measure import write
from onnx import ModelProto, parser

import landbridge as lb

Feeds = dict[str, np.ndarray]
TRIPS = (10, 100, 1000)
ROUNDS = 15


def drawn(*shape: int, scale: float = 1.0) -> np.ndarray:
    return (scale * np.random.default_rng(shape[-1]).standard_normal(shape)).astype(np.float32)


def model(signature: str, outputs: str, loop: str) -> ModelProto:
    return parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 18]> g ({signature}, int64 n) => ({outputs}) {{
        go = Constant<value = bool {{1}}>() first = Constant<value = int64[1] {{0}}>()
        last = Constant<value = int64[1] {{-1}}>() {loop} }}"""
    )


def rows() -> tuple[ModelProto, Feeds]:
    """Appends a row that is made of the mean of all rows."""
    found = model(
        "float[1,8] x, float[8] t",
        "float[K,8] y, float[8] z",
        """y, z = Loop(n, go, x, t) <body = b (int64 i, bool c, float[P,8] a, float[8] u)
        => (bool d, float[Q,8] e, float[8] v) {
        d = Identity(c) m = ReduceMean<keepdims=0>(a, first) s = Add(m, u) v = Tanh(s) w = Unsqueeze(v, first)
        e = Concat<axis=0>(a, w) }>""",
    )
    return found, {"x": drawn(1, 8), "t": drawn(8)}


def cache(width: int) -> tuple[ModelProto, Feeds]:
    """A step of attention over all keys and values so far, to which it appends its own."""
    w = width
    found = model(
        f"float[1,{w}] x, float[1,{w}] k0, float[1,{w}] v0, float[{w},{w}] wq, float[{w},{w}] wk, float[{w},{w}] wv",
        f"float[1,{w}] y, float[K,{w}] keys, float[K,{w}] values",
        f"""y, keys, values = Loop(n, go, x, k0, v0) <body = b
        (int64 i, bool c, float[1,{w}] h, float[P,{w}] k, float[P,{w}] v)
        => (bool d, float[1,{w}] ho, float[Q,{w}] ko, float[Q,{w}] vo) {{
        d = Identity(c) q = MatMul(h, wq) nk = MatMul(h, wk) nv = MatMul(h, wv) ko = Concat<axis=0>(k, nk)
        vo = Concat<axis=0>(v, nv) kt = Transpose(ko) s = MatMul(q, kt) p = Softmax<axis=-1>(s) a = MatMul(p, vo)
        g = Add(a, x) ho = Tanh(g) }}>""",
    )
    weights = {name: drawn(w, w, scale=w**-0.5) for name in ("wq", "wk", "wv")}
    return found, {"x": drawn(1, w), "k0": drawn(1, w), "v0": drawn(1, w), **weights}


def words() -> tuple[ModelProto, Feeds]:
    """Writes a word at a time, of the mean of all words so far, until one that never comes."""
    found = model(
        "int64[1] x, float[32,16] table, float[16,32] w",
        "int64[K] y",
        """y = Loop(n, go, x) <body = b (int64 i, bool c, int64[P] a) => (bool d, int64[Q] e)
        { g = Gather(table, a) m = ReduceMean<keepdims=1>(g, first) l = MatMul(m, w) t = ArgMax<axis=1, keepdims=0>(l)
          e = Concat<axis=0>(a, t) ends = Equal(t, last) on = Not(ends) d = Squeeze(on, first) }>""",
    )
    return found, {"x": np.array([3]), "table": drawn(32, 16), "w": drawn(16, 32)}


def beams() -> tuple[ModelProto, Feeds]:
    """A search with four beams, which reorders all that was written in each trip."""
    found = model(
        "int64[4,1] x, float[4] s0, float[32,16] table, float[16,32] w",
        "int64[4,K] y, float[4] s",
        """four = Constant<value = int64[1] {4}>() flat = Constant<value = int64[1] {128}>()
        vocabulary = Constant<value = int64 {32}>() axis = Constant<value = int64[1] {1}>()
        far = Constant<value = int64[1] {1000000}>()
        y, s = Loop(n, go, x, s0) <body = b (int64 i, bool c, int64[4,P] a, float[4] p)
        => (bool d, int64[4,Q] e, float[4] q) {
        d = Identity(c) tail = Slice(a, last, far, axis) t = Squeeze(tail, axis) h = Gather(table, t) l = MatMul(h, w)
        r = LogSoftmax<axis=-1>(l) pu = Unsqueeze(p, axis) total = Add(r, pu) every = Reshape(total, flat)
        q, best = TopK(every, four) beam = Div(best, vocabulary) word = Mod(best, vocabulary)
        kept = Gather<axis=0>(a, beam) more = Unsqueeze(word, axis) e = Concat<axis=1>(kept, more) }>""",
    )
    return found, {"x": np.ones((4, 1), np.int64), "s0": drawn(4), "table": drawn(32, 16), "w": drawn(16, 32)}


CASES: dict[str, Callable[[], tuple[ModelProto, Feeds]]] = {
    "a mean of rows, to which one is appended": rows,
    "attention over keys and values of 16": lambda: cache(16),
    "attention over keys and values of 256": lambda: cache(256),
    "words until one": words,
    "four beams": beams,
}


def spent(action: Callable[[], object], calls: int) -> float:
    """Seconds of processors that a call takes."""
    began = time.process_time()
    for _ in range(calls):
        action()
    return (time.process_time() - began) / calls


def compared(name: str, trips: int) -> tuple[object, ...]:
    """A row of the table: medians of rounds, in each of which both run."""
    created, feeds = CASES[name]()
    feeds = {**feeds, "n": np.array(trips)}
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    peer = onnxruntime.InferenceSession(created.SerializeToString(), options, ["CPUExecutionProvider"])
    session = lb.Session(lb.compile(created), num_threads=1)
    given = [feeds[spec.name] for spec in session.inputs]
    began = time.process_time()
    session(*given)
    first = time.process_time() - began
    for found, wanted in zip(session(*given), peer.run(None, feeds), strict=True):
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-3, atol=1e-3)  # sums in another order, fed back
    actions = {"ours": lambda: session(*given), "onnxruntime": lambda: peer.run(None, feeds)}
    calls = max(1, 1000 // trips)
    times: dict[str, list[float]] = {each: [] for each in actions}
    for _ in range(ROUNDS):
        for each, action in actions.items():
            times[each].append(spent(action, calls))
    ours, theirs = (statistics.median(times[each]) / trips * 1e6 for each in actions)
    return name, trips, ours, theirs, ours / theirs, first / trips * 1e6


def main() -> None:
    rows = [compared(name, trips) for name in CASES for trips in TRIPS]
    columns = ("loop", "trips", "us a trip", "onnxruntime, us", "over onnxruntime", "us a trip of the first run")
    write("growing_loops", columns, rows)


if __name__ == "__main__":
    main()
