"""Operators that interpolate, normalize, recur, transform and scatter, against float64: within the bound their handlers
state, and at most twice onnxruntime's error."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnxruntime
import pytest

from landbridge.ops.accuracy import accuracy_of, spacing
from tests.ops import float64_references as r
from tests.ops.elementwise_models import KINDS
from tests.ops.float_grids import FLOATS, excess
from tests.ops.one_node import Array, one_node, run_node, takes

OPSET = 22


@dataclass(frozen=True)
class Case:
    """A node: its inputs for a float dtype, which of them are constants, its results and conditions in float64."""

    op: str
    inputs: Callable[[np.random.Generator, np.dtype[Any]], list[Array | None]]
    truth: Callable[..., list[tuple[Array, Array]]]
    constants: Collection[int] = ()
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    #: Whether onnxruntime has it, for f32.
    theirs: bool = True


def spread(rng: np.random.Generator, shape: tuple[int, ...], low: float = -12, high: float = 6) -> Array:
    """Numbers of both signs, dense over exponents."""
    return rng.choice([-1.0, 1.0], shape) * np.exp2(rng.uniform(low, high, shape))


def of(*shapes: tuple[int, ...], extra: list[Array] | None = None, zeros: bool = False) -> Any:
    """Inputs of these shapes, the first with rows of zeros when asked for."""

    def made(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Array | None]:
        arrays = [spread(rng, s).astype(dtype) for s in shapes]
        if zeros:
            arrays[0][:, 0] = 0
            arrays[0][0] = 0
        return [*arrays, *(extra or [])]

    return made


def cell(gates: int, hidden: int = 9, inputs: int = 13, batch: int = 5, peepholes: bool = False) -> Any:
    """X of one step, W, R, B, no lengths, states, and peepholes."""

    def made(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Array | None]:
        rows = gates * hidden
        shapes = [(1, batch, inputs), (1, rows, inputs), (1, rows, hidden), (1, 2 * rows)]
        states = [(1, batch, hidden)] * (2 if gates == 4 else 1) + [(1, 3 * hidden)] * peepholes
        first, last = ([spread(rng, s, -9, 1).astype(dtype) for s in some] for some in (shapes, states))
        return [*first, None, *last]

    return made


def sampled(align: int) -> Any:
    """An image and a grid whose places lie in and around it, none near where rounding changes the taps."""

    def made(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Array | None]:
        n, h, w = 2, 6, 7
        pixel = rng.integers(-4, 10, (n, 8, 5, 2)) + rng.choice([0.2, 0.3, 0.7, 0.8], (n, 8, 5, 2))
        place = 2 * pixel / np.array([w - 1, h - 1]) - 1 if align else (2 * pixel + 1) / np.array([w, h]) - 1
        return [spread(rng, (n, 3, h, w), -3, 3).astype(dtype), place.astype(dtype)]

    return made


def scattered(nd: bool) -> Any:
    def made(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Array | None]:
        index = rng.integers(-9, 9, (40, 1) if nd else (40, 5))
        return [spread(rng, (9, 5), -3, 3).astype(dtype), index, spread(rng, (40, 5), -1, 1).astype(dtype)]

    return made


GRID = [
    Case("GridSample", sampled(align), r.grid_sample(mode, padding, align), attributes=
         {"mode": mode, "padding_mode": padding, "align_corners": align})
    for mode in ("nearest", "linear", "cubic") for padding in ("zeros", "border", "reflection") for align in (0, 1)
]  # fmt: skip
SIZES = np.array([2, 3, 9, 4])
RESIZE = [
    Case("Resize", of((2, 3, 5, 7), extra=[np.zeros(0, np.float32), np.zeros(0, np.float32), SIZES]),
         r.resize((9, 4), mode, coordinates, antialias), (1, 2, 3),
         {"mode": mode, "coordinate_transformation_mode": coordinates, "antialias": antialias})
    for mode in ("linear", "cubic")
    for coordinates in ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel")
    for antialias in (0, 1) if not antialias or coordinates == "half_pixel"
]  # fmt: skip
POINTS, AXIS = np.array(24), np.array(1)
CASES = [
    Case("RNN", cell(1), r.rnn, (1, 2, 3), {"hidden_size": 9}, 2),
    Case("GRU", cell(3), r.gru(0), (1, 2, 3), {"hidden_size": 9}, 2),
    Case("GRU", cell(3), r.gru(1), (1, 2, 3), {"hidden_size": 9, "linear_before_reset": 1}, 2),
    Case("LSTM", cell(4), r.lstm, (1, 2, 3), {"hidden_size": 9}, 3),
    Case("LSTM", cell(4, peepholes=True), r.lstm, (1, 2, 3, 7), {"hidden_size": 9}, 3),
    *GRID,
    *RESIZE,
    Case("LRN", of((2, 9, 4, 5), zeros=True), r.lrn(5, 0.3, 0.75, 1.5), (), {"size": 5, "alpha": 0.3, "bias": 1.5}),
    Case("LRN", of((2, 9, 4, 5)), r.lrn(4, 1e-4, 0.5, 1.0), (), {"size": 4, "beta": 0.5}, theirs=False),
    *(Case("LRN", of((2, 9, 4, 5), zeros=True), r.lrn(3, alpha, beta, 0.75), (),
           {"size": 3, "alpha": alpha, "beta": beta, "bias": 0.75}, theirs=alpha > 0)
      for alpha, beta in ((0.3, 0.25), (0.3, 1.0), (0.3, 0.625), (-1e-3, 0.75))),
    *(Case("LpPool", of((2, 3, 9, 8), zeros=True), r.lp_pool(p), (), {"kernel_shape": [3, 2], "p": p})
      for p in (1, 2, 3)),
    *(Case("LpNormalization", of((6, 31), zeros=True), r.lp_normalization(p), (), {"axis": 1, "p": p})
      for p in (1, 2)),
    Case("DFT", of((2, 31, 1), extra=[np.array(31), AXIS]), r.dft(31), (1, 2)),
    Case("DFT", of((2, 31, 2), extra=[POINTS, AXIS]), r.dft(24), (1, 2)),
    Case("DFT", of((2, 20, 2), extra=[POINTS, AXIS]), r.dft(24, True), (1, 2), {"inverse": 1}),
    Case("DFT", of((1, 1500, 1), extra=[np.array(1500), AXIS]), r.dft(1500, bins=751), (1, 2), {"onesided": 1}),
    Case("STFT", of((2, 99, 1), extra=[np.array(7)]), r.stft, (1, 2)),
    *(Case(op, scattered(op[-1] == "D"), r.scatter(how, op[-1] == "D"), (), {"reduction": how})
      for op in ("ScatterElements", "ScatterND") for how in ("add", "mul", "max", "min")),
]  # fmt: skip


def windowed(case: Case, dtype: str) -> list[Array | None]:
    """The inputs of a case in ``dtype``."""
    rng = np.random.default_rng(8)
    arrays = case.inputs(rng, FLOATS[dtype])
    if case.op == "STFT":  # signal, step, window
        arrays.append(np.hanning(32).astype(FLOATS[dtype]))
    return arrays


def check(case: Case, dtype: str, kind: str) -> list[tuple[Array, Array, Array]]:
    """Run a case and compare it with its bound: for each output the errors, true results and conditions."""
    arrays = windowed(case, dtype)
    wide = [None if a is None else a.astype(np.float64) if a.dtype == FLOATS[dtype] else a for a in arrays]
    truth = case.truth(*wide)
    found = run_node(case.op, arrays, case.constants, case.outputs, kind, OPSET, **case.attributes)
    declared = accuracy_of("", case.op, OPSET)
    assert declared is not None
    errors = []
    for y, (want, condition) in zip(found, truth, strict=True):
        if case.op == "Resize" and dtype == "float64":
            condition = condition + np.abs(wide[0]).max()
        assert y.dtype == FLOATS[dtype]
        assert y.shape == want.shape
        # numpy's own float64 is no truer than a few eps of its own
        beyond = np.abs(y.astype(np.float64) - want) > 1e-13 * (condition + np.abs(want))
        times = excess(y.astype(np.float64), want, dtype, declared, kind, condition if declared.sums else None)
        assert (times[beyond] <= 1).all(), (times.max(), want.flat[times.argmax()], y.flat[times.argmax()])
        errors.append((np.abs(y.astype(np.float64) - want), want, condition))
    return errors


SWEEP = [
    pytest.param(case, dtype, kind, id=f"{case.op}{i}-{dtype}-{kind}")
    for i, case in enumerate(CASES)
    for j, dtype in enumerate(FLOATS)
    for k, kind in enumerate(KINDS)
    if takes(case.op, dtype, OPSET) and (case.op not in ("GridSample", "Resize") or (i + j + k) % 4 == 0)
]


@pytest.mark.sample(6)
@pytest.mark.parametrize(("case", "dtype", "kind"), SWEEP)
def test_error_is_within_the_declared_bound(case: Case, dtype: str, kind: str) -> None:
    check(case, dtype, kind)


@pytest.mark.sample(5)
@pytest.mark.parametrize("case", [c for c in CASES if c.theirs], ids=lambda c: c.op)
def test_error_is_at_most_twice_that_of_onnxruntime(case: Case) -> None:
    arrays = windowed(case, "float32")
    model = one_node(case.op, arrays, case.constants, case.outputs, OPSET, **case.attributes)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    theirs = session.run(None, {i.name: arrays[int(i.name[1:])] for i in session.get_inputs()})
    for (error, want, condition), y in zip(check(case, "float32", "llvm"), theirs, strict=True):
        other = np.abs(y.astype(np.float64) - want)
        # an error of one eps of the terms, or of one place, is none
        least = np.maximum(np.finfo(np.float32).eps * np.abs(condition), spacing(want, "float32"))
        assert np.sqrt((error**2).mean()) <= 2 * np.sqrt((other**2).mean()) + np.sqrt((least**2).mean())
        assert error.max() <= 2 * other.max() + least.max()


@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", ["float16", "float32"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32"])
@pytest.mark.parametrize("zero", [False, True])
def test_dequantized(dtype: str, scale: str, zero: bool, kind: str) -> None:
    rng, info = np.random.default_rng(5), np.iinfo(dtype)
    x = rng.integers(info.min, info.max, (40, 33), endpoint=True).astype(dtype)
    x[0, :2] = info.min, info.max
    steps = np.abs(spread(rng, (33,), -20, -3)).astype(scale)
    arrays: list[Array | None] = [x, steps]
    zeros = np.zeros(33, dtype)
    if zero:
        zeros = rng.integers(info.min, info.max, 33, endpoint=True).astype(dtype) if dtype != "int32" else zeros
        arrays.append(zeros)
    (found,) = run_node("DequantizeLinear", arrays, range(1, len(arrays)), target=kind, axis=1)
    want = (x.astype(np.float64) - zeros) * steps
    declared = accuracy_of("", "DequantizeLinear", 21)
    assert declared is not None
    times = excess(found.astype(np.float64), want, scale, declared, kind)
    assert times.max() <= 1, (times.max(), want.flat[times.argmax()], found.flat[times.argmax()])


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", KINDS)
def test_powers_do_not_depend_on_their_neighbours(kind: str) -> None:
    x = np.array([0.2, 3, 0, 0.7, 5, 1e-3, 0, 8, 2, 0.5, 0, 4, 0.1], np.float64)
    (found,) = run_node("Pow", [x, np.full(x.shape, 3.0)], target=kind)
    np.testing.assert_allclose(found, x**3, rtol=1e-13)
