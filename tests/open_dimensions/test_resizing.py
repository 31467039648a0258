"""A Session that is rebound from size to size: its words are those of a program of that size; little is kept for
each."""

from __future__ import annotations

import gc
import itertools
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import parser

import landbridge as lb
from landbridge.errors import BindError
from landbridge.executable.instance import dimensions, instance
from landbridge.executable.instructions import AllocTensor
from landbridge.session.fixed_executor import FixedExecutor
from landbridge.session.given_parameters import GivenParameters
from landbridge.session.open_program import OpenProgram
from landbridge.session.session_options import BindOptions
from landbridge.sizes.size import of_symbol
from landbridge.vm.arena import ProgramArena
from landbridge.vm.entry import Entry
from landbridge.vm.frame import Frame
from tests.open_dimensions.models import convolutions, parts

DIMS = {"N": "1..3", "H": "16..64:8", "W": "8..256:8@64"}


def branches() -> onnx.ModelProto:
    """A condition that is computed, so that each size has records that branch, and slices of an output."""
    return parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[T, 4] x) => (float[U, 4] y) {
            zero = Constant <value = float {0}> ()
            total = ReduceSum <keepdims = 0> (x)
            positive = Greater(total, zero)
            h = If(positive) <
                then_branch = a () => (float[T, 4] p) { two = Constant <value = float {2}> () p = Mul(x, two) },
                else_branch = b () => (float[T, 4] q) { q = Neg(x) }>
            y = Concat <axis = 0> (h, x, h)
        }"""
    )


def filled() -> onnx.ModelProto:
    """An input says how much of the others is used: their shapes are the same at each size."""
    return parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (int64[1] n, float[70, 4] x, float[70, 4] y) => (float[4] z)
            <int64[1] zero = {0}> {
            a = Slice(x, zero, n, zero)
            b = Slice(y, zero, n, zero)
            c = Mul(a, b)
            z = ReduceSum <keepdims = 0> (c, zero)
        }"""
    )


MODELS = {
    "filled": (filled, {"n": "1..70"}, {"n": (1, 70)}),
    "convolutions": (convolutions, DIMS, {"N": (1, 3), "H": (2, 8, 8), "W": (1, 32, 8)}),
    "parts": (parts, {"L": "2..90"}, {"L": (2, 90)}),
    "branches": (branches, {"T": "1..70"}, {"T": (1, 70)}),
}


@pytest.fixture(scope="module")
def executables() -> Mapping[str, lb.Executable]:
    return {name: lb.compile(make(), dims=dims) for name, (make, dims, _) in MODELS.items()}


def words_of(frame: Frame, owned: Mapping[int, str]) -> list[object]:
    """The words of ``frame``, with addresses of its own words and of the storages ``owned`` in other words."""
    base, nbytes = frame.words.buffer_info()[0], len(frame.words) * 8
    found: list[object] = []
    for word in frame.words:
        storage = next((name for start, name in owned.items() if start <= word < start + (1 << 22)), None)
        if base <= word < base + nbytes:
            found.append(("word", word - base))
        elif storage is not None:
            found.append((storage, word - next(start for start, name in owned.items() if name == storage)))
        else:
            found.append(word)
    return found


def bind(executable: lb.Executable, arena: ProgramArena, num_threads: int = 1) -> FixedExecutor:
    options = BindOptions("cpu", num_threads=num_threads)
    return FixedExecutor(executable, Entry("a test"), options, GivenParameters(), arena)


def storages_of(executor: FixedExecutor) -> dict[int, str]:
    pieces = executor.program.memory._arena._pieces
    return {piece.data_address: f"storage {number}" for number, piece in pieces.items()}


@pytest.mark.parametrize("name", MODELS)
def test_words_are_those_of_a_program_of_the_size(executables: Mapping[str, lb.Executable], name: str) -> None:
    executable, (_, _, ranges) = executables[name], MODELS[name]
    made = [
        [low, high] if not step else [low * step[0], high * step[0]] for low, high, *step in ranges.values()
    ]  # both bounds of each
    every = [dict(zip(ranges, values, strict=True)) for values in itertools.product(*made)]
    for first in every:  # whatever the size that it was bound for
        program = OpenProgram(executable, bind)
        for values in (first, *every):
            shared = program.instance(values, shares=True)
            owned = program.instance(values, shares=False)
            assert shared.executor is program.executor and owned.executor is not program.executor
            frames = (shared.for_runs().program.runs.frame, shared.for_calls().program.calls.frame)
            expected = owned.executor.program.runs.frame
            for frame in frames:
                assert words_of(frame, storages_of(shared.executor)) == words_of(expected, storages_of(owned.executor))
                for a, b in zip(frame.slots, expected.slots, strict=True):
                    assert (a.shape, a.strides, a.nbytes, a.places) == (b.shape, b.strides, b.nbytes, b.places)
                    assert all(type(extent) is int for extent in a.shape)


@pytest.mark.parametrize("name", MODELS)
def test_words_of_sizes_that_are_computed_together(executables: Mapping[str, lb.Executable], name: str) -> None:
    """In any order, from each other and from sizes of their own."""
    executable, (_, _, ranges) = executables[name], MODELS[name]
    program = OpenProgram(executable, bind)
    units = {each: rest[0] if rest else 1 for each, (_, _, *rest) in ranges.items()}
    low = {each: first * units[each] for each, (first, *_) in ranges.items()}
    high = {each: last * units[each] for each, (_, last, *_) in ranges.items()}
    program.instance(high, shares=True)  # memory for all
    along = list(low)[-1]  # one dimension advances
    count = 6
    values = np.array([list((low | {along: low[along] + k * units[along]}).values()) for k in range(count)], np.int64)
    sizes = [dict(zip(low, row, strict=True)) for row in values.tolist()]
    owned = [program.instance(each, shares=False).executor for each in sizes]
    rank = max(len(spec.shape) for spec in executable.main.inputs)
    shapes = [[[*i.shape, *[1] * (rank - len(i.shape))] for i in each.executable.main.inputs] for each in owned]
    ahead = program.instances_along(values, np.array(shapes, np.int64))
    assert ahead is not None and len(ahead) == count
    for number in (0, 1, 5, 2, None, 3, 3, None, 0):
        shared = program.instance(high, shares=True) if number is None else ahead.at(number)
        frame = shared.for_runs().program.runs.frame
        of_calls = shared.for_calls().program.calls.frame
        if number is not None:
            expected = owned[number].program.runs.frame
            for each in (frame, of_calls):
                assert words_of(each, storages_of(shared.executor)) == words_of(expected, storages_of(owned[number]))
                assert [slot.shape for slot in each.slots] == [slot.shape for slot in expected.slots]
    shapes[3][0][0] += 1  # an input that has another shape than is expected: what comes before it is computed
    fewer = program.instances_along(values, np.array(shapes, np.int64))
    assert fewer is not None and len(fewer) == 3
    shapes[0][0][0] += 1
    assert program.instances_along(values, np.array(shapes, np.int64)) is None


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_runs_and_calls_have_sizes_of_their_own(executables: Mapping[str, lb.Executable], data: st.DataObject) -> None:
    session = lb.Session(executables["parts"], num_threads=1)
    peer = onnxruntime.InferenceSession(parts().SerializeToString())
    bound: dict[str, np.ndarray] | None = None
    for _ in range(data.draw(st.integers(2, 8))):
        length = data.draw(st.integers(2, 90))
        feeds = {name: np.random.default_rng(length).standard_normal((4, length), np.float32) for name in "ab"}
        if data.draw(st.booleans()):
            results = session(*feeds.values())
        else:
            bound = feeds
            for name, array in feeds.items():
                session.set_input_zero_copy(name, array)
            session.run()
            results = [session.get_output(0)]
        for given_to, found in ((feeds, results[0]), *([(bound, session.get_output(0))] if bound else [])):
            (expected,) = peer.run(None, given_to)[:1]
            assert np.abs(np.from_dlpack(found) - expected).max() < 1e-5


def test_branches_and_moves_at_every_size(executables: Mapping[str, lb.Executable]) -> None:
    session = lb.Session(executables["branches"], num_threads=1)
    peer = onnxruntime.InferenceSession(branches().SerializeToString())
    reported = {}
    for length in (3, 70, 1, 3, 20):
        for sign in (1, -1):
            x = sign * np.ones((length, 4), np.float32)
            with lb.ledger() as moves:
                (found,) = session(x)
            assert np.array_equal(np.from_dlpack(found), peer.run(None, {"x": x})[0])
            reported[length] = sum(move.nbytes for move in moves)
    owned = lb.Session(instance(executables["branches"], {"T": 20}))
    with lb.ledger() as moves:
        owned(x)
    assert reported[20] == sum(move.nbytes for move in moves)


def test_threads_are_chosen_for_each_size(executables: Mapping[str, lb.Executable]) -> None:
    executable = executables["convolutions"]
    program = OpenProgram(executable, partial(bind, num_threads=2))
    for values in ({"N": 1, "H": 16, "W": 8}, {"N": 3, "H": 64, "W": 256}, {"N": 1, "H": 16, "W": 16}):
        shared, owned = (program.instance(values, shares=shares) for shares in (True, False))
        assert shared._fit.threads == owned.executor.program.threads  # type: ignore[attr-defined]


def test_a_tensor_outside_of_its_memory_is_refused(executables: Mapping[str, lb.Executable]) -> None:
    """As where a file was changed: what holds for the size that was bound first need not for others."""
    executable = executables["convolutions"]
    main = executable.main
    width = of_symbol(dimensions(main)["W"])
    instructions = [
        replace(each, offset=each.offset + (width - 8) * (1 << 40)) if isinstance(each, AllocTensor) else each
        for each in main.instructions
    ]
    changed = replace(executable, functions={"main": replace(main, instructions=tuple(instructions))})
    session = lb.Session(changed, num_threads=1)
    session.prepare(N=1, H=16, W=8)
    with pytest.raises(BindError, match="outside"):
        session.prepare(N=1, H=16, W=16)


def test_parameters_are_those_of_all_sizes() -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[N, 2] x) => (float[N, 2] y)
            <float[2] w = {1, 2}> { y = Add(x, w) }"""
    )
    session = lb.Session(lb.compile(model, dims={"N": "1..99"}, mutable=["w"]), num_threads=1)
    (found,) = session(np.zeros((3, 2), np.float32))
    session.set_params({"w": np.array([5, 6], np.float32)})
    for n in (3, 7, *range(10, 90)):  # more than are kept
        (found,) = session(np.zeros((n, 2), np.float32))
        assert np.array_equal(np.from_dlpack(found), np.tile(np.float32([5, 6]), (n, 1)))
    session.set_params({"w": np.array([7, 8], np.float32)})
    (found,) = session(np.zeros((3, 2), np.float32))
    assert np.array_equal(np.from_dlpack(found), np.tile(np.float32([7, 8]), (3, 1)))


def test_little_is_retained_for_each_size(executables: Mapping[str, lb.Executable]) -> None:
    session = lb.Session(executables["convolutions"], num_threads=1)
    session.prepare(N=1, H=16, W=[256, 8])
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        session.prepare(N=1, H=[24, 32, 40], W=list(range(16, 176, 8)))
        gc.collect()
        now, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert now - before < 60 * 2048  # what a numpy array, two specs and a key take; 150 KB each before they shared


_WEIGHTS = """
import gc, json, sys
import numpy as np
import landbridge as lb

def private():  # not of the file, whose pages the system has once
    fields = dict(line.split(":") for line in open("/proc/self/smaps_rollup").read().splitlines()[1:])
    return 1024 * sum(int(fields[name].split()[0]) for name in ("Private_Dirty", "Private_Clean")), 1024 * int(
        fields["Rss"].split()[0])

executable = lb.load(sys.argv[1])
sessions = []
def more():
    sessions.append(lb.Session(executable, num_threads=1))
    for n in (1, 3, 8):
        sessions[-1](np.ones((n, 1024), np.float32))
    gc.collect()
more()
before = private()
for _ in range(8):
    more()
print(json.dumps([now - then for now, then in zip(private(), before)]))
"""


def test_weights_are_there_once(tmp_path: Path) -> None:
    """Nine Sessions of three sizes each: the process does not grow by a copy of the weights, which are 16 MB."""
    rng = np.random.default_rng(0)
    weights = [onnx.numpy_helper.from_array(rng.standard_normal((1024, 1024), np.float32), f"w{i}") for i in range(4)]
    layers = " ".join(f"h{i + 1} = MatMul(h{i}, w{i})" for i in range(4))
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g (float[N, 1024] h0) => (float[N, 1024] h4) {{ {layers} }}'
    )
    model.graph.initializer.extend(weights)
    executable = lb.compile(model, dims={"N": "1..8"})
    nbytes = sum(array.nbytes for array in executable.constants.values())
    assert nbytes >= 16 << 20
    executable.save(tmp_path / "net.lbx")
    ran = subprocess.run(
        [sys.executable, "-c", _WEIGHTS, str(tmp_path / "net.lbx")],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    for grown in json.loads(ran.stdout):
        assert grown < nbytes / 4


def test_what_is_likely_empty_lies_apart() -> None:
    made = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[N, 3] x) => (float[N, 3] y) {'
        "  rows = Constant<value_int = 0>() columns = Constant<value_int = 1>()"
        "  a = CumSum(x, rows) b = CumSum<reverse = 1>(x, rows) c = CumSum(x, columns)"
        "  ab = Mul(a, b) y = Mul(ab, c) }"
    )
    executable = lb.compile(made, dims={"N": lb.Dim(0, 64, likely=0)})
    session = lb.Session(executable, num_threads=1)
    for rows in (40, 1, 0):
        x = np.random.default_rng(rows).random((rows, 3), np.float32)
        (found,) = session(x)
        expected = x.cumsum(0) * x[::-1].cumsum(0)[::-1] * x.cumsum(1)
        np.testing.assert_allclose(np.asarray(found), expected, 1e-5)
