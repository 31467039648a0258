"""Loops that a run takes no trip through: the states as they were, and no rows, in each way that a loop is compiled.

A count below 0 is none too, as in onnxruntime.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import landbridge as lb

HEADER = '<ir_version: 8, opset_import: ["" : 17]>'
#: A state, and rows of it, until the condition that is given is false, or the sum is large.
FIXED = (
    "<body = b (int64 i, bool ci, float[3] a) => (bool co, float[3] ao, float[3] so) "
    "{ co = Identity(ci) ao = Add(a, x) so = Mul(ao, x) }>"
)
ENDS = (
    "<body = b (int64 i, bool ci, float[3] a) => (bool co, float[3] ao, float[3] so) { ao = Add(a, x) so = Mul(ao, x) "
    "s = ReduceSum <keepdims = 0> (ao) most = Constant <value = float {5.0}> () co = Less(s, most) }>"
)
GROWS = (
    "<body = b (int64 i, bool ci, float[L] a) => (bool co, float[M] ao, float[3] so) "
    "{ co = Identity(ci) ao = Concat <axis = 0> (a, x) so = Mul(x, x) }>"
)
ROWS = (
    "<body = b (int64 i, bool ci) => (bool co, float[3] so) { co = Identity(ci) f = Cast <to = 1> (i) so = Mul(x, f) }>"
)
TRUE, FALSE, FOUR = (
    "c = Constant <value = bool {1}> ()",
    "c = Constant <value = bool {0}> ()",
    "n = Constant <value = int64 {4}> ()",
)
SMALL = (
    "total = ReduceSum <keepdims = 0> (x) two = Constant <value = float {2.0}> () w = Less(total, two)"  # of x it is so
)
X = np.array([0.5, 0.7, 0.1], np.float32)
_N = [{"n": np.array(n)} for n in (2, 0, 5, -3, 0)]
_C = [{"c": np.array(c)} for c in (True, False)]
_Q = [{"q": np.array([n, 0, 0], np.float32)} for n in (2, 0, 3, -2)]

CASES: dict[str, tuple[str, str, str, list[dict[str, Any]]]] = {
    "an input counts": ("int64 n", "float[3] y, float[K,3] s", f"{TRUE} y, s = Loop(n, c, x) {FIXED}", _N),
    "its rows are read": (
        "int64 n",
        "float[3] y, float[3] t",
        f"{TRUE} z = Constant <value = int64[1] {{0}}> () y, s = Loop(n, c, x) {FIXED} "
        "t = ReduceSum <keepdims = 0> (s, z)",
        _N,
    ),
    "there are rows alone": ("int64 n", "float[K,3] s", f"{TRUE} s = Loop(n, c) {ROWS}", _N),
    "there is a state alone": (
        "int64 n",
        "float[3] y",
        f"{TRUE} y = Loop(n, c, x) {FIXED.replace(', float[3] so)', ')').replace(' so = Mul(ao, x)', '')}",
        _N,
    ),
    "it grows": ("int64 n", "float[L] y, float[K,3] s", f"{TRUE} y, s = Loop(n, c, x) {GROWS}", _N),
    "it may end sooner": ("int64 n", "float[3] y, float[K,3] s", f"{TRUE} y, s = Loop(n, c, x) {ENDS}", _N),
    "an extent counts": (
        "float[N,2] q",
        "float[3] y, float[K,3] s",
        f"{TRUE} e = Shape <start = 0, end = 1> (q) n = Squeeze(e) y, s = Loop(n, c, x) {FIXED}",
        [{"q": np.zeros((n, 2), np.float32)} for n in (2, 0, 3)],
    ),
    **{
        f"a row {which} of what counts is taken, {where}": (
            "float[N,3] q",
            "float[3] y, float[K,3] s",
            f"{TRUE} {SMALL} e = Shape <start = 0, end = 1> (q) n = Squeeze(e) y, s = {inner}",
            [{"q": np.full((n, 3), 2, np.float32)} for n in (2, 0, 3)],
        )
        for which, index in (("of each trip", ""), ("at a constant", "i0 = Constant <value = int64 {0}> ()"))
        for body in [
            "<body = b (int64 i, bool ci, float[3] a) => (bool co, float[3] ao, float[3] so) "
            f"{{ co = Identity(ci) {index} r = Gather <axis = 0> (q, i{'0' * bool(index)}) ao = Add(a, r) "
            "so = Mul(ao, x) }>"
        ]
        for where, inner in (
            ("in the graph", f"Loop(n, c, x) {body}"),
            (
                "in a branch",
                f"If(c) <then_branch = t () => (float[3] ty, float[K,3] ts) {{ ty, ts = Loop(n, c, x) {body} }}, "
                "else_branch = f () => (float[3] fy, float[N,3] fs) { fy = Identity(x) fs = Identity(q) }>",
            ),
            (
                "in a branch of data",
                f"If(w) <then_branch = t () => (float[3] ty, float[K,3] ts) {{ ty, ts = Loop(n, c, x) {body} }}, "
                "else_branch = f () => (float[3] fy, float[N,3] fs) { fy = Identity(x) fs = Identity(q) }>",
            ),
        )
    },
    "data count": (
        "float[3] q",
        "float[3] y, float[K,3] s",
        f"{TRUE} e = ReduceSum <keepdims = 0> (q) n = Cast <to = 7> (e) y, s = Loop(n, c, x) {FIXED}",
        _Q,
    ),
    "a constant counts 0": (
        "",
        "float[3] y, float[K,3] s",
        f"{TRUE} n = Constant <value = int64 {{0}}> () y, s = Loop(n, c, x) {FIXED}",
        [{}],
    ),
    "a constant counts less": (
        "",
        "float[3] y, float[K,3] s",
        f"{TRUE} n = Constant <value = int64 {{-3}}> () y, s = Loop(n, c, x) {FIXED}",
        [{}],
    ),
    "it is never true": ("", "float[3] y, float[K,3] s", f"{FALSE} {FOUR} y, s = Loop(n, c, x) {FIXED}", [{}]),
    "nothing counts and it is never true": (
        "",
        "float[3] y, float[K,3] s",
        f"{FALSE} y, s = Loop(, c, x) {FIXED}",
        [{}],
    ),
    "an input says whether": ("bool c", "float[3] y, float[K,3] s", f"{FOUR} y, s = Loop(n, c, x) {FIXED}", _C),
    "an input says whether it begins": ("bool c", "float[3] y, float[K,3] s", f"y, s = Loop(, c, x) {ENDS}", _C),
    "data say whether": (
        "float[3] q",
        "float[3] y, float[K,3] s",
        "e = ReduceSum <keepdims = 0> (q) z = Constant <value = float {1.0}> () c = Less(z, e) "
        f"{FOUR} y, s = Loop(n, c, x) {FIXED}",
        _Q,
    ),
}


def model_of(inputs: str, outputs: str, nodes: str) -> onnx.ModelProto:
    given = ", ".join(filter(None, ("float[3] x", inputs)))
    return onnx.parser.parse_model(f"{HEADER} g ({given}) => ({outputs}) {{ {nodes} }}")


@pytest.mark.sample(7)
@pytest.mark.parametrize("case", CASES)
def test_it_is_as_onnxruntime_has_it(case: str) -> None:
    inputs, outputs, nodes, runs = CASES[case]
    model = model_of(inputs, outputs, nodes)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    reference = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    program = lb.compile(model)
    session = lb.Session(program)
    for run in runs:
        feeds = {"x": X, **run}
        found = session(*(feeds[spec.name] for spec in program.main.inputs))
        for got, wanted in zip(found, reference.run(None, feeds), strict=True):
            assert np.asarray(got).shape == wanted.shape
            np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-5)


@pytest.mark.parametrize("extent", ["0", "N"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scans_of_nothing(extent: str, axis: int) -> None:
    """onnxruntime fails on these; ONNX says what there is without a trip."""
    scan = (
        "y, s = Scan(x, q) <body = b (float[3] a, float[3] e) => (float[3] ao, float[3] so) "
        f"{{ ao = Add(a, e) so = Mul(ao, e) }}, num_scan_inputs = 1, scan_output_axes = [{axis}]>"
    )
    program = lb.compile(model_of(f"float[{extent},3] q", "float[3] y, float[R,S] s", scan))
    feeds = {"x": X, "q": np.zeros((0, 3), np.float32)}
    state, rows = lb.Session(program)(*(feeds[spec.name] for spec in program.main.inputs))
    np.testing.assert_array_equal(np.asarray(state), X)
    assert np.asarray(rows).shape == ((0, 3) if axis == 0 else (3, 0))
