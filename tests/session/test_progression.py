"""Sizes that advance evenly from run to run, as those of decode steps do, are computed ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import onnx
import pytest

import landbridge as lb
from landbridge.session.fixed_executor import FixedExecutor
from landbridge.vm import arena as arenas
from landbridge.vm.resizing import Resizing

CAPACITY = 90
LAYER = """
<ir_version: 8, opset_import: ["" : 17]>
layer (float[1, S, 8] x, float[1, P, 8] past_key, float[1, P, 8] past_value)
    => (float[1, S, 8] y, float[1, T, 8] present_key, float[1, T, 8] present_value)
{
    present_key = Concat <axis = 1> (past_key, x)
    present_value = Concat <axis = 1> (past_value, x)
    keys = Transpose <perm = [0, 2, 1]> (present_key)
    scores = MatMul (x, keys)
    weights = Softmax <axis = -1> (scores)
    y = MatMul (weights, present_value)
}
"""
#: The same with a mask of all steps. Where a mask has one element, it is for all of them: a program of its own.
WITH_MASK = """
<ir_version: 8, opset_import: ["" : 17]>
layer (float[1, S, 8] x, float[1, 1, T] mask, float[1, P, 8] past_key, float[1, P, 8] past_value)
    => (float[1, S, 8] y, float[1, T, 8] present_key, float[1, T, 8] present_value)
{
    present_key = Concat <axis = 1> (past_key, x)
    present_value = Concat <axis = 1> (past_value, x)
    keys = Transpose <perm = [0, 2, 1]> (present_key)
    scores = MatMul (x, keys)
    masked = Add (scores, mask)
    weights = Softmax <axis = -1> (masked)
    y = MatMul (weights, present_value)
}
"""
#: A mask that grows with the steps, and a division of the extent that does not advance evenly.
MASKED = """
<ir_version: 8, opset_import: ["" : 17]>
masked (float[1, T, 8] x) => (float[1, H, 8] y, float[1, 8] sum)
<int64[1] zero = {0}, int64[1] most = {9223372036854775807}, int64[1] axis = {1}, int64[1] two = {2}>
{
    y = Slice (x, zero, most, axis, two)
    sum = ReduceSum <keepdims = 0> (x, axis)
}
"""


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """The choices of sizes that were computed one by one."""
    found: list[object] = []
    fit = Resizing.fit

    def noted(self: Resizing, values: dict[str, int]) -> object:
        found.append(dict(values))
        return fit(self, values)

    monkeypatch.setattr(Resizing, "fit", noted)
    yield found


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The inputs and outputs that the program of runs was given, by name."""
    found: list[str] = []

    def noting(bind: Callable[..., None]) -> Callable[..., None]:
        def noted(self: FixedExecutor, name: str, value: object) -> None:
            found.append(name)
            bind(self, name, value)

        return noted

    for method in ("set_input", "set_input_zero_copy", "set_output_zero_copy"):
        monkeypatch.setattr(FixedExecutor, method, noting(getattr(FixedExecutor, method)))
    yield found


def attended(rows: np.ndarray, mask: float | np.ndarray = 0.0) -> np.ndarray:
    """The result of a step over all ``rows``, the last of which is new."""
    scores = rows[-1:] @ rows.T + mask
    weights = np.exp(scores - scores.max())
    return weights / weights.sum() @ rows


def test_steps_of_new_lengths_compute_no_sizes_of_their_own(fits: list[object]) -> None:
    session = lb.Session(lb.compile(onnx.parser.parse_model(LAYER), alias="auto"))
    state = session.bind_state(capacity=CAPACITY)
    rows = np.random.default_rng(0).standard_normal((CAPACITY, 8)).astype(np.float32)
    session(rows[None, :5])
    for at in range(5, CAPACITY):
        if at == 9:
            fits.clear()
        (y,) = session(rows[None, at : at + 1])
        np.testing.assert_allclose(np.asarray(y)[0], attended(rows[: at + 1]), rtol=2e-5, atol=2e-6)
    assert len(fits) <= 6  # of 81 steps: one for each 33, and two where memory grows, which happens twice
    with pytest.raises(lb.StateCapacityError, match=f"the run needs {CAPACITY + 1} steps"):
        session(rows[None, :1])
    state.rewind(7)
    (y,) = session(rows[None, 7:8])
    np.testing.assert_allclose(np.asarray(y)[0], attended(rows[:8]), rtol=2e-5, atol=2e-6)
    (y,) = session(rows[None, 8:10])  # two rows: no step of the progression
    assert state.length == 10 and np.asarray(y).shape == (1, 2, 8)


def test_bound_runs_keep_their_outputs_between_lengths(fits: list[object]) -> None:
    session = lb.Session(lb.compile(onnx.parser.parse_model(LAYER), alias="auto"))
    session.bind_state(capacity=CAPACITY)
    rows = np.random.default_rng(1).standard_normal((CAPACITY, 8)).astype(np.float32)
    row, out = rows[None, :1].copy(), np.zeros((1, 1, 8), np.float32)
    session.set_input_zero_copy("x", row)
    session.set_output_zero_copy("y", out)
    for at in range(60):
        row[0] = rows[at]
        session.run()
        np.testing.assert_allclose(out[0], attended(rows[: at + 1]), rtol=2e-5, atol=2e-6)
    assert len(fits) < 12


def test_a_growing_mask_is_all_that_steps_bind(fits: list[object], bound: list[str]) -> None:
    session = lb.Session(lb.compile(onnx.parser.parse_model(WITH_MASK), alias="auto"))
    state, rng = session.bind_state(capacity=CAPACITY), np.random.default_rng(2)
    rows = rng.standard_normal((CAPACITY, 8)).astype(np.float32)
    row, out = rows[None, :1].copy(), np.zeros((1, 1, 8), np.float32)
    session.set_input_zero_copy("x", row)
    session.set_output_zero_copy("y", out)
    for at in [*range(60), *range(30, 50)]:
        state.rewind(at)
        row[0] = rows[at]
        mask = rng.standard_normal((1, 1, at + 1)).astype(np.float32)
        session.set_input_zero_copy("mask", mask)
        if at == 40:
            bound.clear()
            fits.clear()
        session.run()
        np.testing.assert_allclose(out[0], attended(rows[: at + 1], mask[0]), rtol=2e-5, atol=2e-6)
    assert set(bound) == {"mask"} and not fits  # the length is where it was, with another number
    other = np.zeros((1, 1, 8), np.float32)
    session.set_output_zero_copy("y", other)
    state.rewind(7)
    session.set_input_zero_copy("mask", np.zeros((1, 1, 8), np.float32))
    row[0] = rows[7]
    session.run()
    np.testing.assert_allclose(other[0], attended(rows[:8]), rtol=2e-5, atol=2e-6)


def test_calls_with_a_growing_mask_compute_no_sizes_of_their_own(fits: list[object]) -> None:
    session = lb.Session(lb.compile(onnx.parser.parse_model(WITH_MASK), alias="auto"))
    session.bind_state(capacity=CAPACITY)
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((CAPACITY, 8)).astype(np.float32)
    for at in range(CAPACITY):
        mask = rng.standard_normal((1, 1, at + 1)).astype(np.float32)
        (y,) = session(rows[None, at : at + 1], mask)
        np.testing.assert_allclose(np.asarray(y)[0], attended(rows[: at + 1], mask[0]), rtol=2e-5, atol=2e-6)
    assert len(fits) < 20


def test_programs_that_continue_a_state_have_one_lock_when_memory_has_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs with a lock each, that share memory, wait for each other at each run, which takes longer than a step."""
    monkeypatch.setattr(arenas, "_RESERVED", 0)
    session = lb.Session(lb.compile(onnx.parser.parse_model(LAYER), alias="auto"))
    state = session.bind_state(capacity=CAPACITY)
    locks, programs = set(), set()
    for _ in range(CAPACITY):
        session(np.ones((1, 1, 8), np.float32))
        backing, _ = state.tensors["past_key"].storage.part()
        locks |= {tenant.program for _, tenant in backing.live_tenants()}
        programs |= session._executor.instances.executors()  # type: ignore[attr-defined]
    (lock,) = locks
    assert not lock.shares and len(programs) > 1


def test_steps_that_go_back_a_little_compute_no_sizes_of_their_own(fits: list[object]) -> None:
    session = lb.Session(lb.compile(onnx.parser.parse_model(LAYER), alias="auto"))
    state = session.bind_state(capacity=CAPACITY)
    rows = np.random.default_rng(4).standard_normal((CAPACITY, 8)).astype(np.float32)

    def step(at: int) -> None:
        state.rewind(at)
        (y,) = session(rows[None, at : at + 1])
        np.testing.assert_allclose(np.asarray(y)[0], attended(rows[: at + 1]), rtol=2e-5, atol=2e-6)

    for at in range(75):
        step(at)
    fits.clear()
    for at in (75, 70, 71, 70, 70):
        step(at)
    assert not fits
    state.rewind(70)
    (y,) = session(rows[None, 70:72])  # its length is one of those that were prepared, and it has two rows
    assert state.length == 72 and np.asarray(y).shape == (1, 2, 8)


def test_lengths_that_are_elements_advance(fits: list[object]) -> None:
    """A length that is bound, and read at each run: what is bound stays bound."""
    executable = lb.compile(
        onnx.parser.parse_model(LAYER),
        alias={"present_key": "past_key", "present_value": "past_value"},
        shapes={"past_key": (1, CAPACITY, 8), "past_value": (1, CAPACITY, 8)},
    )
    session = lb.Session(executable)
    for side in ("key", "value"):
        session.bind_state(f"present_{side}", f"past_{side}")
    (length,) = (spec for spec in session.inputs if spec.name not in ("x", "past_key", "past_value"))
    filled, row = np.zeros(length.shape, length.dtype), np.zeros((1, 1, 8), np.float32)
    session.set_input_zero_copy(length.name, filled)
    session.set_input_zero_copy("x", row)
    rows = np.random.default_rng(5).standard_normal((CAPACITY, 8)).astype(np.float32)
    for at in (*range(80), 70, 20, 3, *range(30, 80), 29):
        filled[...], row[0] = at, rows[at]
        session.run()
        found = np.asarray(session.get_output("y"))[0]
        np.testing.assert_allclose(found, attended(rows[: at + 1]), rtol=2e-5, atol=2e-6)
    assert len(fits) < 20
    filled[...] = CAPACITY
    with pytest.raises(lb.ShapeError):
        session.run()
    filled[...], row[0] = 50, rows[50]
    session.run()
    np.testing.assert_allclose(np.asarray(session.get_output("y"))[0], attended(rows[:51]), rtol=2e-5, atol=2e-6)


def test_the_memory_that_is_planned_is_that_of_the_last_call() -> None:
    session = lb.Session(lb.compile(onnx.parser.parse_model(MASKED)))
    for length in (*range(10, 40), 10, 30):
        session(np.ones((1, length, 8), np.float32))
        fresh = lb.Session(session.executable)
        fresh.prepare(T=length)
        (found,), (expected,) = session.planned_memory, fresh.planned_memory
        lines = -((length + 1) // 2 * 32 // -64)  # of 64 bytes: every other row of 32, and one more for the sum
        assert found == expected and found.output_bytes == 64 * (lines + 1)


@pytest.mark.parametrize("step", [1, 3, -1])
def test_shapes_that_advance(fits: list[object], step: int) -> None:
    session = lb.Session(lb.compile(onnx.parser.parse_model(MASKED)))
    lengths = [90 + step * at for at in range(80)]
    for length in lengths:
        x = np.random.default_rng(length).standard_normal((1, length, 8)).astype(np.float32)
        y, total = session(x)
        np.testing.assert_array_equal(np.asarray(y), x[:, ::2])
        np.testing.assert_allclose(np.asarray(total), x.sum(1), rtol=1e-4, atol=1e-4)
    if step > 0:
        assert len(fits) < 40


def test_sizes_that_were_prepared_before_the_last_ones_are_found(fits: list[object]) -> None:
    session = lb.Session(lb.compile(onnx.parser.parse_model(MASKED)))
    session.prepare(T=200)  # memory for all of them

    def call(length: int) -> None:
        x = np.random.default_rng(length).standard_normal((1, length, 8)).astype(np.float32)
        y, _ = session(x)
        np.testing.assert_array_equal(np.asarray(y), x[:, ::2])

    for length in range(10, 50):
        call(length)
    fits.clear()
    for length in (20, 49, 21, 60, 12, 61, 62):
        call(length)
    assert not fits


def test_lengths_that_are_illegal_are_refused_as_before() -> None:
    model = onnx.parser.parse_model(MASKED)
    session = lb.Session(lb.compile(model, dims={"T": lb.Dim(2, 20)}))
    for length in range(2, 21):
        session(np.ones((1, length, 8), np.float32))
    with pytest.raises(lb.ShapeError, match=r"axis 1 of input 'x' is 21; legal"):
        session(np.ones((1, 21, 8), np.float32))


def test_a_call_with_too_few_arrays_is_refused_as_before() -> None:
    session, x = lb.Session(lb.compile(onnx.parser.parse_model(LAYER))), np.ones((1, 1, 8), np.float32)
    for length in range(1, 12):  # the last ones were prepared with others
        session(x, np.ones((1, length, 8), np.float32), np.ones((1, length, 8), np.float32))
    for arrays in ([], [x], [x, np.ones((1, 12, 8), np.float32)]):
        with pytest.raises(lb.InputError, match=rf"^{len(arrays)} arrays are given; the program takes 3"):
            session(*arrays)
