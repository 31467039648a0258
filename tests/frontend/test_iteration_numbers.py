"""Loops whose bodies need the number of the trip as a size: they stay loops, against onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

import landbridge as lb
from landbridge.executable.instructions import Loop, flattened
from landbridge.ir.iteration_numbers import is_iteration, iteration_name

#: Writes a row of ``o`` where the counter ``k`` says, as exporters of a table recognizer do.
WRITTEN = """
    far = Gather(extents, one)
    end = Min(far, k1)
    there = Slice(o, k, end, one, one)
    like = Shape(there)
    wide = Unsqueeze(h2, one)
    row = Expand(wide, like)
    from = Squeeze(k)
    to = Squeeze(end)
    by = Squeeze(one)
    range = Range(from, to, by)
    column = Constant<value_ints=[1,-1,1]>()
    range3 = Reshape(range, column)
    times = Constant<value_ints=[1,1,4]>()
    where = Tile(range3, times)
    o2 = ScatterElements<axis=1>(o, where, row)
"""
#: Reads a row of ``o`` and writes all of it.
READ = """
    two = Constant<value_ints=[2]>()
    {start}
    end = Add(start, one)
    part = Slice(o, start, end, one)
    sum = Add(o, part)
    wide = Unsqueeze(h2, one)
    half = Constant<value_floats=[0.5]>()
    less = Mul(sum, half)
    o2 = Add(less, wide)
"""


def counting(
    rows: int, writes: str, ends: str = "on = Identity(counts)", result: str = "all = Identity(o)"
) -> onnx.ModelProto:
    """A loop over ``rows`` trips, or fewer where ``ends`` says so, that counts with floats and adds 0 to what it hands
    on; its condition is an array, what branches give for it perhaps a scalar."""
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[1,4] h0, float[4,4] w) => (float[1,r,4] all, float[1,4] h) {{
            most = Constant<value_int=1024>()
            k0 = Constant<value_ints=[0]>()
            n = Constant<value_ints=[{rows}]>()
            one = Constant<value_ints=[1]>()
            shape = Constant<value_ints=[1,{rows},4]>()
            o0 = ConstantOfShape(shape)
            begins = Less(k0, n)
            none = Constant<value_floats=[7.0]>()
            k, h, o, seen = Loop(most, begins, k0, h0, o0, none) <body = b
                (int64 i, bool[1] going, int64[1] k, float[1,4] h, float[1,{rows},4] o, float unseen)
                => (bool[1] on, int64[1] k2, float[1,4] h2, float[1,{rows},4] o2, float[1,4] seen) {{
                h1 = MatMul(h, w)
                h2 = Tanh(h1)
                seen = Abs(h2)
                extents = Shape(o)
                kf = Cast<to=1>(k)
                onef = Constant<value_floats=[1.0]>()
                kf1 = Add(kf, onef)
                k1 = Cast<to=7>(kf1)
                {writes}
                counts = Less(k1, n)
                {ends}
                zero = Constant<value_ints=[0]>()
                ku = Unsqueeze(k1, zero)
                ka = Add(ku, zero)
                k2 = Squeeze(ka, zero)
            }}>
            {result}
        }}"""
    )


def check(model: onnx.ModelProto, *, stays: bool = True, most: int = 100_000) -> None:
    """Compiled, a loop or not, it gives what onnxruntime gives, on every run."""
    executable = lb.compile(model, max_nodes=most)
    instructions = [each for part in executable.functions.values() for each in flattened(part.instructions)]
    assert any(isinstance(each, Loop) for each in instructions) == stays
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    peer = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    session = lb.Session(executable)
    rng = np.random.default_rng(3)
    for _ in range(2):
        feeds = {"h0": rng.standard_normal((1, 4), "f4"), "w": rng.standard_normal((4, 4), "f4") / 2}
        for found, wanted in zip(session(feeds).values(), peer.run(None, feeds), strict=True):
            # Products of 4 terms and tanh, whose steps shrink what is off: a few ulp.
            np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5, atol=1e-5)


def test_a_row_is_written_where_a_counter_says() -> None:
    check(counting(600, WRITTEN), most=200)  # 600 trips of their own have 20,000


def test_a_condition_ends_it_and_the_rows_until_then_are_the_result() -> None:
    ends = """
        e0 = ReduceSum<keepdims=0>(seen)
        limit = Constant<value_float=0.4>()
        quiet = Less(e0, limit)
        stop = If(quiet) <
            then_branch = t () => (bool q) { q = Constant<value=bool {1}>() },
            else_branch = f () => (bool[1] p) { p = Not(counts) }
        >
        more = Not(stop)
        both = And(counts, more)
        b0 = Cast<to=7>(both)
        b1 = Add(b0, nothing)
        on = Cast<to=9>(b1)
    """
    ends = "nothing = Constant<value_ints=[0]>()" + ends
    check(counting(60, WRITTEN, ends, "first = Constant<value_ints=[0]>() all = Slice(o, first, k, one)"))


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "start",
    [
        "start = Div(k, two)",
        "start = Min(k, two)",
        "kk = Mul(k, two) start = Mod(kk, two)",
        "far = Gather(extents, one) start = Sub(far, k1)",
    ],
)
def test_sizes_that_are_made_of_a_counter(start: str) -> None:
    check(counting(60, READ.format(start=start)))


def test_an_extent_that_grows_with_the_iterations_has_it_unfolded() -> None:
    grows = """
        zeros = Constant<value_ints=[0]>()
        part = Slice(o, zeros, k1, one)
        sum = ReduceSum<keepdims=1>(part, one)
        wide = Unsqueeze(h2, one)
        both = Add(sum, wide)
        o1 = Add(o, both)
        small = Constant<value_floats=[0.1]>()
        o2 = Mul(o1, small)
    """
    check(counting(12, grows), stays=False)


def test_a_loop_in_a_loop_counts_too() -> None:
    inner = """
        three = Constant<value_int=3>()
        o2 = Loop(three, , o) <body = c (int64 j, bool go, float[1,40,4] p) => (bool gone, float[1,40,4] p2) {
            gone = Identity(go)
            flat = Constant<value_ints=[1]>()
            jj = Reshape(j, flat)
            at = Add(jj, k)
            last = Constant<value_ints=[39]>()
            at0 = Min(at, last)
            at1 = Add(at0, one)
            part = Slice(p, at0, at1, one)
            half = Constant<value_floats=[0.5]>()
            less = Mul(part, half)
            wide = Unsqueeze(h2, one)
            less2 = Add(less, wide)
            p1 = Mul(p, half)
            p2 = Add(p1, less2)
        }>
    """
    check(counting(40, inner))


def test_names_of_iterations_are_no_names_of_dimensions() -> None:
    assert is_iteration(iteration_name("0 of loop"))
    assert not is_iteration("iteration_0")
