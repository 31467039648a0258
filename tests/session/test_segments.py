"""Programs that are cut where data decide sizes, against numpy."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import landbridge as lb

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.filterwarnings("ignore::landbridge.FallbackWarning")


def compiled(text: str, **options: Any) -> lb.Executable:
    return lb.compile(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\n{text}'), **options)


def x_of(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


#: Two selections of one tensor and one of what came of them, with values that cross pieces, views and constants.
CHAIN = """g (float[N,4] x) => (float[A,4] y, int64[2,B] z, float[C] s, float[N,4] w) {
    a = Relu(x)
    w = Neg(a)
    at = NonZero(a)
    t = Transpose<perm=[1,0]>(at)
    first = Constant<value_ints=[0]>()
    rows = Gather<axis=1>(t, first)
    flat = Constant<value_ints=[-1]>()
    r = Reshape(rows, flat)
    g = Gather<axis=0>(w, r)
    y = Mul(g, g)
    all = Reshape(y, flat)
    one = Constant<value_float=1.0>()
    large = Greater(all, one)
    c = Compress(all, large)
    s = Sqrt(c)
    small = Less(x, one)
    z = NonZero(small)
}"""


def chain(x: Array) -> list[Array]:
    a = np.maximum(x, 0)
    y = np.square(a[np.nonzero(a)[0]])
    return [y, np.array(np.nonzero(x < 1)), np.sqrt(y[y > 1]), -a]


@pytest.fixture(scope="module")
def chained() -> lb.Executable:
    return compiled(CHAIN)


def test_pieces_run_for_any_sizes(chained: lb.Executable, tmp_path: Path) -> None:
    chained.save(tmp_path / "chain.lbx")
    for executable in (chained, lb.load(tmp_path / "chain.lbx")):
        session = lb.Session(executable)
        for n in (1, 2, 7, 30):
            x = x_of(n, n, 4)
            for found, expected in zip(session(x), chain(x), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_what_is_selected_may_be_nothing(chained: lb.Executable) -> None:
    x = np.full((3, 4), -1, np.float32)
    y, z, s, w = lb.Session(chained)(x)
    assert (y.shape, s.shape, z.shape) == ((0, 4), (0,), (2, 12))
    np.testing.assert_array_equal(w, np.zeros_like(x))


def test_every_way_to_run(chained: lb.Executable) -> None:
    session = lb.Session(chained)
    x = x_of(1, 5, 4)
    expected = chain(x)
    with pytest.raises(lb.InputError, match="'x'"):
        session.run()
    session.set_input("x", x)
    session.run()
    np.testing.assert_allclose(session.get_output("s"), expected[2], rtol=1e-6)
    session.set_input_zero_copy(0, x)
    x *= 2
    expected = chain(x)
    session.run_async().wait(20)
    np.testing.assert_allclose(session.get_output(0), expected[0], rtol=1e-6)
    named = session({"x": x})
    assert list(named) == ["y", "z", "s", "w"]
    np.testing.assert_array_equal(named["z"], expected[1])
    out = [np.empty_like(each) for each in expected]
    session(x, out=out)
    np.testing.assert_allclose(out[2], expected[2], rtol=1e-6)
    with pytest.raises(lb.InputError, match="shape"):
        session(x, out=[np.empty(1, np.float32)] * 4)
    for wrong in (lambda: session(x, x), lambda: session({"q": x}), lambda: session(x_of(0, 2, 5))):
        with pytest.raises((lb.InputError, lb.ShapeError)):
            wrong()
    with pytest.raises(lb.UnsupportedError, match="data decide"):
        session.set_output_zero_copy("y", out[0])
    assert {mem.device for mem in session.planned_memory} == {"cpu:0"}


def test_results_outlive_runs(chained: lb.Executable) -> None:
    session = lb.Session(chained)
    first, second = x_of(1, 6, 4), x_of(2, 6, 4)
    retained = session(first)
    session(second)
    for found, expected in zip(retained, chain(first), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_many_threads_may_call(chained: lb.Executable) -> None:
    session = lb.Session(chained)
    wrong: list[int] = []

    def call(seed: int) -> None:
        for n in range(1, 12):
            x = x_of(seed + n, n, 4)
            if any(not np.allclose(a, b) for a, b in zip(session(x), chain(x), strict=True)):
                wrong.append(n)

    threads = [threading.Thread(target=call, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong and not any(thread.is_alive() for thread in threads)


def test_weights_of_pieces_may_be_replaced() -> None:
    executable = compiled(
        """g (float[3,4] x) => (float[A] y) <float[1] k = {2.0}> {
            a = Mul(x, k)
            zero = Constant<value_float=0.0>()
            c = Greater(a, zero)
            flat = Constant<value_ints=[-1]>()
            b = Reshape(a, flat)
            d = Reshape(c, flat)
            e = Compress(b, d)
            y = Add(e, k)
        }""",
        mutable=["k"],
    )
    session = lb.Session(executable)
    x = x_of(0, 3, 4)
    for k in (2.0, -3.0):
        session.set_params({"k": np.array([k], np.float32)})
        a = x * np.float32(k)
        np.testing.assert_allclose(session(x)[0], a[a > 0] + np.float32(k), rtol=1e-6)
        np.testing.assert_array_equal(session.get_params()["k"], [k])
    with pytest.raises(lb.InputError, match="'q'"):
        session.set_params({"q": x})


@pytest.mark.parametrize("dtype", ["int64", "int32", "float"])
def test_a_computed_number_may_say_a_size(dtype: str) -> None:
    session = lb.Session(
        compiled(
            f"""g ({dtype}[3] x, {dtype}[4] w) => ({dtype}[A] y) {{
                k = ReduceMax<keepdims=0>(x)
                zero = Constant<value = {dtype} {{0}}>()
                one = Constant<value = {dtype} {{1}}>()
                r = Range(zero, k, one)
                m = ReduceMax<keepdims=0>(w)
                y = Mul(r, m)
            }}"""
        )
    )
    kind = np.dtype("float32" if dtype == "float" else dtype)
    w = np.array([1, 3, 2, 0], kind)
    for most in (1, 4, 9):
        (found,) = session(np.array([1, most, 1], kind), w)
        np.testing.assert_array_equal(found, np.arange(most).astype(kind) * 3)
        assert np.asarray(found).dtype == kind


def test_nothing_but_a_selection() -> None:
    session = lb.Session(compiled("g (float[2,3] x) => (int64[2,K] y) { y = NonZero(x) }"))
    x = np.array([[0, 1, 0], [2, 0, 3]], np.float32)
    np.testing.assert_array_equal(session(x)[0], np.array(np.nonzero(x)))


def test_a_detector_ends_with_non_max_suppression() -> None:
    session = lb.Session(
        compiled(
            """g (float[1,N,4] boxes, float[1,N,3] logits) => (float[K,4] kept, float[K] best) {
                scores = Sigmoid(logits)
                by_class = Transpose<perm=[0,2,1]>(scores)
                most = Constant<value_ints=[5]>()
                overlap = Constant<value_floats=[0.5]>()
                least = Constant<value_floats=[0.4]>()
                chosen = NonMaxSuppression(boxes, by_class, most, overlap, least)
                two = Constant<value_ints=[2]>()
                at = Gather<axis=1>(chosen, two)
                flat = Constant<value_ints=[-1]>()
                rows = Reshape(at, flat)
                zero = Constant<value_ints=[0]>()
                all = Squeeze(boxes, zero)
                kept = Gather<axis=0>(all, rows)
                best = GatherND(by_class, chosen)
            }"""
        )
    )
    for n in (2, 40):
        rng = np.random.default_rng(n)
        corner = rng.random((1, n, 2), np.float32) * 4
        boxes = np.concatenate([corner, corner + 1 + rng.random((1, n, 2), np.float32)], 2)
        logits = rng.standard_normal((1, n, 3)).astype(np.float32)
        retained, best = session(boxes, logits)
        scores = 1 / (1 + np.exp(-logits))
        assert np.asarray(best).min() > 0.4
        assert retained.shape[0] <= 15 and np.isin(np.asarray(retained)[:, 0], boxes).all()
        assert np.isclose(np.asarray(best)[0], scores[0, :, 0].max())
    retained, best = session(boxes, np.full_like(logits, -9))
    assert (retained.shape, best.shape) == ((0, 4), (0,))


def test_a_dimension_that_data_decide_may_be_narrowed() -> None:
    """A convolution over what was kept wants three of it at least: a run of fewer is refused, one of none is empty."""
    session = lb.Session(
        compiled(
            """g (float[1,N] x, float[1,1,3] w) => (float[1,1,M] y) {
                zero = Constant<value_float = 0.0>()
                flat = Constant<value_ints = [-1]>()
                row = Reshape(x, flat)
                good = Greater(row, zero)
                some = Compress<axis = 0>(row, good)
                shape = Constant<value_ints = [1, 1, -1]>()
                image = Reshape(some, shape)
                y = Conv(image, w)
            }""",
            shapes={"x": (1, "N")},
        )
    )
    w = np.array([[[1, 2, 4]]], np.float32)
    for n in (3, 8):
        x = np.concatenate([np.arange(1, n + 1), [-1, -2]]).astype(np.float32)[None]
        retained = x[x > 0]
        np.testing.assert_allclose(
            session(x, w)[0], (retained[:-2] + 2 * retained[1:-1] + 4 * retained[2:])[None, None], rtol=1e-6
        )
    with pytest.raises(lb.ShapeError):
        session(np.ones((1, 2), np.float32), w)


#: y is -1 where nothing is selected, else the sum of x; and the sum of x over how many are selected, or one.
_NONE = """none = Equal(n, zero)
    y = If(none) <then_branch = t () => (float[1] a) { a = Constant<value_floats=[-1.0]>() },
                  else_branch = e () => (float[1] b) { b = ReduceSum(x) }>"""
_LEAST = """least = Max(n, one)
    s = ReduceSum(x)
    k = Cast<to=1>(least)
    y = Div(s, k)"""


@pytest.mark.parametrize("requested", [_NONE, _LEAST])
def test_what_is_requested_of_a_size_is_answered_for_nothing_too(requested: str) -> None:
    session = lb.Session(
        compiled(
            f"""g (float[6] x) => (int64[1,A] at, float[1] y) {{
                one = Constant<value_ints=[1]>()
                zero = Constant<value_ints=[0]>()
                at = NonZero(x)
                n = Shape<start=1, end=2>(at)
                {requested}
            }}"""
        )
    )
    for count in (1, 4, 6):
        x = np.array([2.0] * count + [0.0] * (6 - count), np.float32)
        at, y = session(x)
        assert at.shape == (1, count)
        np.testing.assert_array_equal(y, [2.0 if requested == _LEAST else 2.0 * count])
    np.testing.assert_array_equal(session(np.zeros(6, np.float32))[1], [0.0 if requested == _LEAST else -1.0])
    np.testing.assert_array_equal(session(np.full(6, 3.0, np.float32))[0], [range(6)])


def test_pieces_hand_on_what_numpy_has_no_dtype_for() -> None:
    """Of bfloat16, which an operator of the host reads."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
    g (float[N] x) => (int64[1,M] y) {
        above = Relu(x)
        short = Cast<to = 16>(above)
        y = NonZero(short)
    }""")
    (y,) = lb.Session(lb.compile(model))(np.array([3, -1, 0, 2], np.float32))
    assert np.asarray(y).tolist() == [[0, 3]]


def test_an_input_whose_extent_data_decide() -> None:
    """A sum in a loop requires that it is half of a size that data decide; it is compared once that is known."""
    halves = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 15]>
        halves (float[N,H,W] x, float[A,C,D] other) => (float[P,Q,R] y)
        <bool true = {1}, int64 three = {3}>
        {
            shape = Shape(other)
            wide = Expand(x, shape)
            half = MaxPool<kernel_shape = [2], strides = [2]>(wide)
            y = Loop(three, true, half) <body =
              b (int64 i, bool before, float[a,b,c] c) => (bool after, float[d,e,f] sum) {
                sum = Add(c, x)
                after = Identity(before)
            }>
        }""")
    session = lb.Session(lb.compile(halves))
    x = np.arange(30, dtype=np.float32).reshape(5, 6, 1)
    (y,) = session(x, np.ones((5, 6, 2), np.float32))
    np.testing.assert_array_equal(np.asarray(y), 4 * x)
    with pytest.raises(lb.ShapeError, match=r"axis 2 of input 'x' is 1; it must be .*, 2 with .*, as the run decided"):
        session(x, np.ones((5, 6, 4), np.float32))


def test_an_extent_of_an_input_that_data_decide_from_it() -> None:
    """The sum requires that W is half of the result of Expand, to which W belongs: no run can know it in time."""
    text = """g (float[N,H,W] x, float[A,C,W] other) => (float[P,Q,R] y) {
        shape = Shape(other)
        wide = Expand(x, shape)
        half = MaxPool<kernel_shape = [2], strides = [2]>(wide)
        y = Add(half, x)
    }"""
    x, wide = np.ones((2, 3, 1), np.float32), np.ones((2, 3, 2), np.float32)
    with pytest.raises(lb.ShapeError, match=r"'wide' is computed from an extent.*compile with shapes="):
        lb.Session(compiled(text))(x, x)
    (y,) = lb.Session(compiled(text.replace("W] other", "2] other").replace("W] x", "1] x")))(x, wide)
    np.testing.assert_array_equal(np.asarray(y), 2 * x)
