"""Loops and branches that are programs of their own: of tensors that grow, against onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto

import landbridge as lb
from landbridge.errors import ShapeError, UnsupportedOperatorError
from landbridge.executable.instructions import Loop, flattened
from landbridge.executable.segments import LOOP, segments_of

HEADER = '<ir_version: 8, opset_import: ["" : 17]>\n'
#: A decoder of one layer and two heads, whose keys and values grow by a row in each trip.
CACHE = """ {{
    {first}
    last, keys, values, rows = Loop <body = step (int64 i, bool go, float[1,1,8] t, float[1,2,P,4] k, float[1,2,P,4] v)
        => (bool on, float[1,1,8] t2, float[1,2,Q,4] k2, float[1,2,Q,4] v2, float[1,1,8] row) {{
        heads = Constant<value_ints = [0, 0, 2, 4]>()
        flat = Constant<value_ints = [0, 0, 8]>()
        th = Reshape(t, heads)
        q = Transpose<perm = [0, 2, 1, 3]>(th)
        k2 = Concat<axis = 2>(k, q)
        v1 = Neg(q)
        v2 = Concat<axis = 2>(v, v1)
        kt = Transpose<perm = [0, 1, 3, 2]>(k2)
        s = MatMul(q, kt)
        p = Softmax<axis = -1>(s)
        o = MatMul(p, v2)
        ot = Transpose<perm = [0, 2, 1, 3]>(o)
        y = Reshape(ot, flat)
        t2 = Add(y, t)
        row = Sin(t2)
        on = Identity(go)
    }}>(steps, , x, keys_0, values_0)
}}"""


def parsed(text: str) -> ModelProto:
    model = onnx.parser.parse_model(HEADER + text)
    for node in model.graph.node:  # what is declared of results is not looked at
        node.name = node.name or node.op_type.lower()
    return model


def agree(model: ModelProto, *feeds: dict[str, np.ndarray], executable: lb.Executable | None = None) -> lb.Executable:
    """Each of ``feeds`` gives what onnxruntime gives."""
    executable = executable or lb.compile(model)
    session, reference = lb.Session(executable), onnxruntime.InferenceSession(model.SerializeToString())
    for each in feeds:
        for found, expected in zip(session(each).values(), reference.run(None, each), strict=True):
            assert found.shape == expected.shape
            # A trip is a softmax and sums of 8 terms: a few ulp, which later trips read.
            np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5, atol=1e-5)
    return executable


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape, np.float32)


def calls(executable: lb.Executable) -> list[str]:
    return [call.operator for segment in segments_of(executable) for call in segment.calls]


OUTPUTS = "(float[1,2,R,4] keys, float[1,2,R,4] values, float[1,1,8] last, float[S,1,1,8] rows)"


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_keys_and_values_that_begin_empty(steps):
    """A loop that stays a loop must not take the shape of the second trip for that of all others."""
    first = "keys_0 = Constant<value = float[1,2,0,4] {}>()\n values_0 = Identity(keys_0)"
    text = f"g (int64 steps, float[1,1,8] x) => {OUTPUTS} " + CACHE.format(first=first)
    agree(parsed(text), {"steps": np.array(steps), "x": drawn(1, 1, 8)})


def test_keys_and_values_that_begin_with_what_is_given(tmp_path):
    inputs = "int64 steps, float[1,1,8] x, float[1,2,P,4] keys_0, float[1,2,P,4] values_0"
    model = parsed(f"g ({inputs}) => {OUTPUTS} " + CACHE.format(first=""))
    feeds = [
        {"steps": np.array(n), "x": drawn(1, 1, 8), "keys_0": drawn(1, 2, p, 4), "values_0": drawn(1, 2, p, 4)}
        for n, p in ((3, 2), (1, 1), (6, 7))
    ]
    executable = agree(model, *feeds)
    assert calls(executable) == [LOOP]
    executable.save(tmp_path / "grows.lbx")
    agree(model, *feeds, executable=lb.load(tmp_path / "grows.lbx"))


def test_text_that_grows_until_a_word_ends_it():
    model = parsed("""g (int64 most, int64[1,L] begin, float[7,4] table) => (int64[1,M] all, int64[T,1,1] said) {
    true = Constant<value = bool {1}>()
    all, said = Loop <body = step (int64 i, bool go, int64[1,P] ids) => (bool on, int64[1,Q] more, int64[1,1] next) {
        axis = Constant<value_ints = [1]>()
        end = Constant<value_int = 3>()
        one = Constant<value_ints = [-1]>()
        far = Constant<value_ints = [1000000]>()
        x = Gather(table, ids)
        xt = Transpose<perm = [0, 2, 1]>(x)
        s = MatMul(x, xt)
        p = Softmax<axis = -1>(s)
        y = MatMul(p, x)
        last = Slice(y, one, far, axis)
        tt = Transpose<perm = [1, 0]>(table)
        scores = MatMul(last, tt)
        next = ArgMax<axis = -1, keepdims = 0>(scores)
        more = Concat<axis = 1>(ids, next)
        ended = Equal(next, end)
        goes = Not(ended)
        none = Constant<value = int64[0] {}>()
        on = Reshape(goes, none)
    }>(most, true, begin)
}""")
    ids = np.array([[1, 5, 2]])
    agree(
        model, *({"most": np.array(n), "begin": ids[:, :k], "table": drawn(7, 4)} for n, k in ((9, 3), (2, 1), (40, 2)))
    )


def test_a_list_that_begins_as_no_matrix():
    """torch.zeros(0) takes rows of any length where a scripted loop concatenates to it."""
    model = parsed("""g (float[N,3] x) => (float[M] y) {
    shape = Shape(x)
    zero = Constant<value_int = 0>()
    n = Gather(shape, zero)
    y_0 = Constant<value = float[0] {}>()
    y = Loop <body = step (int64 i, bool go, float[P] a) => (bool on, float[Q] b) {
        row = Gather(x, i)
        b = Concat<axis = 0>(row, a)
        on = Identity(go)
    }>(n, , y_0)
}""")
    agree(model, *({"x": drawn(n, 3)} for n in (4, 1, 2)))


def test_branches_of_different_shapes_and_a_loop_in_one():
    model = parsed("""g (float[N,2] x) => (float[M,2] y) {
    s0 = ReduceSum<keepdims = 0>(x)
    zero = Constant<value_float = 0.0>()
    c = Greater(s0, zero)
    z = If <then_branch = then () => (float[P,2] a) {
        limit = Constant<value_float = 20.0>()
        true = Constant<value = bool {1}>()
        a = Loop <body = step (int64 i, bool go, float[Q,2] t) => (bool on, float[R,2] u) {
            u = Concat<axis = 0>(t, x)
            s = ReduceSum<keepdims = 0>(u)
            on = Less(s, limit)
        }>(, true, x)
    }, else_branch = orelse () => (float[P,2] b) { b = Abs(x) }>(c)
    y = Neg(z)
}""")
    agree(model, {"x": np.ones((2, 2), np.float32)}, {"x": -np.ones((3, 2), np.float32)})


def test_a_loop_that_never_runs_gives_what_it_was_given():
    model = parsed("""g (int64 n, float[P] x) => (float[M] y) {
    y = Loop <body = step (int64 i, bool go, float[Q] a) => (bool on, float[R] b) {
        b = Concat<axis = 0>(a, a)
        on = Identity(go)
    }>(n, , x)
}""")
    executable = agree(model, *({"n": np.array(n), "x": drawn(5)} for n in (0, 3)))
    assert Loop not in [type(each) for each in flattened(executable.main.instructions)]


def test_what_has_another_rank_in_each_trip_is_named():
    model = parsed("""g (int64 n, float[P] x) => (float[M] y) {
    y = Loop <body = step (int64 i, bool go, float[Q] grows) => (bool on, float[R] b) {
        front = Constant<value_ints = [0]>()
        b = Unsqueeze(grows, front)
        on = Identity(go)
    }>(n, , x)
}""")
    with pytest.raises(
        UnsupportedOperatorError, match="Loop node 'loop': 'grows', which it carries, has 2 axes before"
    ):
        lb.compile(model)


def test_rows_of_different_shapes_are_refused_by_the_run():
    model = parsed("""g (int64 n, float[P] x) => (float[M] y, float[N,R] rows) {
    y, rows = Loop <body = step (int64 i, bool go, float[Q] a) => (bool on, float[R] b, float[R] row) {
        b = Concat<axis = 0>(a, a)
        row = Neg(b)
        on = Identity(go)
    }>(n, , x)
}""")
    session = lb.Session(lb.compile(model))
    _, rows = session(np.array(1), drawn(2))
    assert rows.shape == (1, 4)
    with pytest.raises(ShapeError, match=r"node 'loop': rows of output 1 have shapes \(4,\) and \(8,\)"):
        session(np.array(2), drawn(2))
