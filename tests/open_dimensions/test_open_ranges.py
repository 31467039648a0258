"""Models as their files are, nothing said of what they leave open: they run for every size that they can be run for."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

import landbridge as lb
from landbridge.frontend.onnx import decisions
from landbridge.frontend.onnx.equal_sizes import resolved, solved
from landbridge.sizes.printing import range_text
from landbridge.sizes.question import Question
from landbridge.sizes.settle import settled
from landbridge.sizes.size import Extent, Size, dimension, dimensions_of
from landbridge.sizes.terms import Symbol, of_atom


def _model(text: str) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {text}')


def _ranges(executable: lb.Executable) -> dict[str, str]:
    symbols = dimensions_of(e for spec in executable.main.inputs for e in spec.shape)
    return {name: range_text(symbol) for name, symbol in symbols.items()}


WINDOW = """window (float[n, 3, h, w] x) => (float[n, 3, p, q] y) {
    y = MaxPool <kernel_shape = [3, 5], strides = [2, 2]> (x)
}"""
PYRAMID = """pyramid (float[n, 1, h, w] x) => (float[n, 1, p, q] y) {
    a = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (x)
    b = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (a)
    s = Constant <value = float[4] {1.0, 1.0, 2.0, 2.0}> ()
    c = Resize <mode = "nearest"> (b, , s)
    y = Add (a, c)
}"""
FIRST = """first (float[t, 4] x) => (float[s, 4] y) {
    zero = Constant <value = int64[1] {0}> ()
    end = Constant <value = int64[1] {1000000000}> ()
    y = Slice (x, zero, end, zero)
}"""
SQUEEZED = """squeezed (float[n, t] x) => (float[n, 1] y) {
    shape = Constant <value = int64[3] {0, 1, -1}> ()
    a = Reshape (x, shape)
    b = MaxPool <kernel_shape = [8], strides = [8]> (a)
    axes = Constant <value = int64[1] {2}> ()
    y = Squeeze (b, axes)
}"""


LAST = """last (float[n, t, 4] x) => (float[n, 4] y) {
    shape = Shape (x)
    one = Constant <value = int64 {1}> ()
    length = Gather (shape, one)
    index = Sub (length, one)
    y = Gather <axis = 1> (x, index)
}"""
FROM_THE_END = """ends (float[n, t, 4] x) => (float[n, 2, 4] y) {
    index = Constant <value = int64[2] {-1, -3}> ()
    y = Gather <axis = 1> (x, index)
}"""
BOTH_ENDS = """ends (float[n, t, 4] x) => (float[n, 3, 4] y) {
    index = Constant <value = int64[3] {0, -1, 1}> ()
    y = Gather <axis = 1> (x, index)
}"""


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("text", "ranges", "sizes"),
    [
        (LAST, {"n": "1..", "t": "1.."}, [(1, 1, 4), (3, 17, 4)]),
        (FROM_THE_END, {"n": "1..", "t": "3.."}, [(1, 3, 4), (3, 17, 4)]),
        (BOTH_ENDS, {"n": "1..", "t": "2.."}, [(1, 2, 4), (3, 17, 4)]),
        (WINDOW, {"n": "1..", "h": "3..", "w": "5.."}, [(1, 3, 3, 5), (2, 3, 31, 6), (1, 3, 8, 64)]),
        (PYRAMID, {"n": "1..", "h": "4..:4", "w": "4..:4"}, [(1, 1, 4, 4), (2, 1, 64, 36), (1, 1, 8, 12)]),
        (FIRST, {"t": "1.."}, [(1, 4), (17, 4)]),
        (SQUEEZED, {"n": "1..", "t": "8..15"}, [(1, 8), (3, 15), (2, 11)]),
    ],
    ids=["last", "from the end", "both ends", "window", "pyramid", "slice", "squeeze"],
)
def test_runs_in_the_ranges_it_can(text: str, ranges: dict[str, str], sizes: list[tuple[int, ...]]) -> None:
    model = _model(text)
    executable = lb.compile(model)
    assert {
        name: found.replace("2147483647", "").replace("2147483644", "") for name, found in _ranges(executable).items()
    } == ranges
    session, peer = lb.Session(executable), onnxruntime.InferenceSession(model.SerializeToString())
    for size in sizes:
        x = np.random.default_rng(1).standard_normal(size).astype(np.float32)
        np.testing.assert_array_equal(np.from_dlpack(session(x)[0]), peer.run(None, {"x": x})[0])


#: As exporters write masks, of which they do not know that they are of their words' extents.
MASKED = """masked (float[b, s] x, float[d, t] mask) => (float[b, s] y) {
    rows = Shape <start = 0, end = 1> (x)
    rest = Constant <value = int64[1] {-1}> ()
    shape = Concat <axis = 0> (rows, rest)
    m = Reshape (mask, shape)
    y = Add (x, m)
}"""
#: The same of all words beside each other, which a single row of words would do for, too.
OF_PAIRS = """pairs (float[b, s] x, float[d, t] mask) => (float[b, s, r] y) {
    rows = Shape <start = 0, end = 1> (x)
    rest = Constant <value = int64[1] {-1}> ()
    shape = Concat <axis = 0> (rows, rest)
    m = Reshape (mask, shape)
    one = Constant <value = int64[1] {1}> ()
    across = Unsqueeze (x, one)
    along = Unsqueeze (x, rest)
    pairs = Mul (along, across)
    mine = Unsqueeze (m, one)
    y = Add (pairs, mine)
}"""


@pytest.mark.parametrize("text", [MASKED, OF_PAIRS], ids=["words", "pairs"])
def test_inputs_of_one_rank_may_be_of_the_same_extents(text: str) -> None:
    model = _model(text)
    executable = lb.compile(model)
    assert _ranges(executable).keys() == {"b", "s"}
    session, peer = lb.Session(executable), onnxruntime.InferenceSession(model.SerializeToString())
    for size in ((1, 1), (3, 7), (2, 33)):
        x = np.random.default_rng(1).integers(-9, 9, (2, *size)).astype(np.float32)  # whose products are exact
        expected = peer.run(None, {"x": x[0], "mask": x[1]})[0]
        np.testing.assert_array_equal(np.from_dlpack(session(*x)[0]), expected)
    with pytest.raises(lb.ShapeError, match="input 'mask'"):
        session(np.zeros((2, 3), np.float32), np.zeros((3, 2), np.float32))


def test_a_dimension_in_two_ranges_is_not_made_itself() -> None:
    (one,), (other,) = (Size(of_atom(Symbol("n", low, 9))).terms for low in (0, 1))
    question = Question((one, (other[0], -1)), equal=True, needed=True)
    assert solved(question, ()) is None


def test_what_an_equality_says_of_dimensions() -> None:
    p, k, t, n, m = (dimension(name) for name in "pktnm")

    def equal(left: Extent, right: Extent) -> Question:
        difference = left - right
        assert isinstance(difference, Size)
        return Question(difference.terms, equal=True, needed=True)

    assert solved(equal(n, m), ()) == {"n": m}
    assert solved(equal(n, m), {"n"}) == {"m": n}  # that whose range was not declared
    assert solved(equal(t, p + k), ()) == {"t": p + k}
    assert solved(equal(t, p + k), {"t"}) is None  # p = t - k may be below 1
    assert solved(equal(t * k, n * k), ()) == {"t": n}
    assert solved(equal(n // 2, m // 2), ()) is None
    both = solved(equal(dimension("a", 1, 64, 4), dimension("b", 8, 100)), {"a", "b"})
    assert both == {"b": dimension("a", 1, 64, 4), "a": dimension("a", 8, 64, 4)}
    assert resolved({"t": p + k, "p": dimension("p", 2, 5), "k": 3})["t"] == dimension("p", 2, 5) + 3


def test_a_size_it_cannot_run_for_is_named() -> None:
    session = lb.Session(lb.compile(_model(PYRAMID)))
    with pytest.raises(lb.ShapeError, match=r"axis 3 of input 'x' is 30; legal: w, with w in 4\.\.\d+:4"):
        session(np.zeros((1, 1, 32, 30), np.float32))


def test_what_is_declared_stays() -> None:
    with pytest.raises(lb.UndecidedSizeError, match=r"w in 1\.\.64"):
        lb.compile(_model(WINDOW), dims={"w": "1..64"})
    assert _ranges(lb.compile(_model(WINDOW), dims={"w": "5..64:1@32"}))["w"] == "5..64@32"


def test_what_no_range_mends_is_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """unknown (float[n, 3, h, w] x) => (float[n, 3, p, q] y) {
        a = MaxPool <kernel_shape = [3, 5], strides = [2, 2]> (x)
        y = test.NoSuchOperator (a)
    }"""
    tried: list[object] = []
    monkeypatch.setattr(decisions, "settled", lambda *args: tried.append(args) or settled(*args))
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 18, "test": 1]> {text}')
    with pytest.raises(lb.UnsupportedOperatorError, match="NoSuchOperator"):
        lb.compile(model)
    assert len(tried) == 2  # the height and the width that the window fits in


def test_a_program_says_its_ranges() -> None:
    executable = lb.compile(_model(PYRAMID), dims={"n": "1..8@2"})
    assert executable.dimensions == {
        "n": lb.Dim(1, 8, likely=2),
        "h": lb.Dim(4, multiple_of=4),
        "w": lb.Dim(4, multiple_of=4),
    }
    assert not lb.compile(_model(PYRAMID), shapes={"x": (1, 1, 8, 8)}).dimensions


def test_a_dimension_may_be_one_number() -> None:
    executable = lb.compile(_model(PYRAMID), dims={"n": 1, "h": "32"})
    assert executable.main.inputs[0].shape[:3] == (1, 1, 32) and list(_ranges(executable)) == ["w"]
    again = lb.compile(_model(PYRAMID), shapes={"x": ("N", 1, "2*N", "W")}, dims={"N": 2})
    assert again.main.inputs[0].shape[:3] == (2, 1, 4)


def test_names_in_shapes_are_open_ranges_too() -> None:
    executable = lb.compile(_model(PYRAMID), shapes={"x": (1, 1, "H", 32)})
    assert _ranges(executable)["H"].startswith("4..") and executable.main.inputs[0].shape[3] == 32


def test_a_model_for_no_size_ends_in_what_is_wrong() -> None:
    text = "none (float[n, 4] x, float[n, 3] z) => (float[n, 4] y) { y = Add (x, z) }"
    with pytest.raises(lb.LandbridgeError, match=r"A \(n, 4\), B \(n, 3\) does not broadcast"):
        lb.compile(_model(text))


def test_axes_of_extent_1_are_left_out_only_where_they_are() -> None:
    text = "squeezed (float[1, t, 4] x) => (float[s, 4] y) { y = Squeeze (x) }"
    executable = lb.compile(_model(text))
    assert _ranges(executable)["t"].startswith("2..")  # of 1 the result has another rank
    with pytest.raises(lb.UndecidedSizeError, match="t == 1"):
        lb.compile(_model(text), dims={"t": "1..9"})
