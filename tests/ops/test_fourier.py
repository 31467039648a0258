"""Fourier transforms beside numpy's in float64: every way to cut points, both directions, and what is left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import landbridge as lb
from landbridge.dtypes import numpy_dtype
from landbridge.ops.accuracy import Accuracy, accuracy_of
from landbridge.ops.butterflies import MOST_POINTS, Complex, butterfly, radices
from landbridge.ops.fourier_plan import fourier_plan
from tests.ops.elementwise_models import KINDS
from tests.ops.one_node import Array, one_node, run_node

#: Of one table, of two and of three factors, with a prime of each kind, a prime squared; by a convolution.
POINTS = (
    1,
    2,
    3,
    16,
    17,
    24,
    31,
    48,
    60,
    64,
    77,
    91,
    120,
    121,
    127,
    128,
    130,
    256,
    289,
    360,
    400,
    509,
    512,
    1000,
    1331,
)
LARGE = (1021, 2048, 2310, 4096, 5000, 8191, 16384, 16381, 20000, 32768, 40009, 65536)
EPS = {"float32": 2.0**-23, "float64": 2.0**-52}
#: How many eps of the magnitudes of all points results may be off by: 5 were found for impulses of 40009 points, which
#: a convolution transforms, and less than 1 for noise. The bound that operators state is far above.
USUAL = 6.0


def complex_of(x: Array) -> Array:
    return np.asarray(x[..., 0] + 1j * x[..., 1] if x.shape[-1] == 2 else x[..., 0] + 0j)


def magnitudes(x: Array, axis: int) -> Array:
    return np.asarray(np.abs(complex_of(x)).sum(axis, keepdims=True))


def off(y: Array, want: Array, total: Array) -> float:
    """The largest error of ``y``, [..., 1 or 2], relative to the sum of magnitudes."""
    parts = np.stack([want.real, want.imag], -1)[..., : y.shape[-1]]
    assert y.shape == parts.shape
    return float((np.abs(y.astype(np.float64) - parts) / total[..., None]).max())


def signal(shape: tuple[int, ...], dtype: str = "float32", seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def dft(x: Array, axis: int, length: int | None = None, target: str = "llvm", **attributes: int) -> Array:
    arrays = [x, None if length is None else np.array(length), np.array(axis)]
    return run_node("DFT", arrays, (1, 2), target=target, **attributes)[0]


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("points", radices())
def test_butterflies_are_transforms(points: int, sign: int) -> None:
    x = complex_of(signal((points, 2), "float64"))
    made = butterfly([Complex(v.real, v.imag) for v in x], sign)
    want = np.fft.fft(x) if sign < 0 else np.fft.ifft(x) * points
    found = np.array([[v.re, v.im] for v in made], np.float64)  # what scalars of kernels do, floats do as well
    np.testing.assert_allclose(complex_of(found), want, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("points", [*POINTS, *LARGE, 1 << 20, 3**9, 7 * 1009, 30030])
@pytest.mark.parametrize("parts", [1, 2])
def test_radices_multiply_to_the_points(points: int, parts: int) -> None:
    plan = fourier_plan(points, parts)
    assert np.prod(plan.radices) == (plan.length or points)
    assert all(r <= MOST_POINTS for r in plan.radices[1:])
    assert plan.radices[0] <= 128  # no table grows with the square of the points
    assert not plan.length or 2 * points - 1 <= plan.length < 4 * points


@pytest.mark.sample(8)
@pytest.mark.parametrize("inverse", [0, 1])
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("points", POINTS)
def test_each_number_of_points(points: int, parts: int, inverse: int) -> None:
    x = signal((3, points, parts))
    want = (np.fft.ifft if inverse else np.fft.fft)(complex_of(x.astype(np.float64)), axis=1)
    total = magnitudes(x, 1) / (points if inverse else 1)
    assert off(dft(x, 1, inverse=inverse), want, total) <= USUAL * EPS["float32"]


@pytest.mark.sample(2)
@pytest.mark.parametrize("inverse", [0, 1])
@pytest.mark.parametrize("points", LARGE)
def test_many_points(points: int, inverse: int) -> None:
    x = signal((1, points, 2))
    want = (np.fft.ifft if inverse else np.fft.fft)(complex_of(x.astype(np.float64)), axis=1)
    total = magnitudes(x, 1) / (points if inverse else 1)
    assert off(dft(x, 1, inverse=inverse), want, total) <= USUAL * EPS["float32"]


@pytest.mark.sample(4)
@pytest.mark.parametrize("points", [384, 509, 16381])
@pytest.mark.parametrize("kind", ["impulse", "constant", "tone", "growing"])
def test_signals_whose_errors_could_add_up(points: int, kind: str) -> None:
    at = np.arange(points)
    z = {
        "impulse": (at == 5).astype(np.complex128),
        "constant": np.ones(points, np.complex128),
        "tone": np.exp(2j * np.pi * at * 7 / points),
        "growing": np.exp(16 * at / points).astype(np.complex128),
    }[kind]
    x = np.stack([z.real, z.imag], -1)[None].astype(np.float32)
    want = np.fft.fft(complex_of(x.astype(np.float64)), axis=1)
    assert off(dft(x, 1), want, magnitudes(x, 1)) <= USUAL * EPS["float32"]


@pytest.mark.sample(3)
@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("points", [64, 90, 131])
def test_every_target_and_dtype(points: int, dtype: str, target: str) -> None:
    x = signal((2, points, 2)).astype(numpy_dtype(dtype))
    y = dft(x, 1, target=target)
    assert y.dtype == x.dtype
    wide = x.astype(np.float64)
    want = np.fft.fft(complex_of(wide), axis=1)
    rounding = {"float16": 2.0**-11, "bfloat16": 2.0**-8}.get(dtype, 0)  # of the result alone
    eps = EPS["float64" if dtype == "float64" else "float32"]
    assert off(y, want, magnitudes(wide, 1)) <= USUAL * eps + rounding


@pytest.mark.sample(6)
@pytest.mark.parametrize("axis", [0, 1, 2, -2])
@pytest.mark.parametrize("length", [None, 20, 60, 127, 200])
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("onesided", [0, 1])
def test_any_axis_cut_or_with_zeros(axis: int, length: int | None, parts: int, onesided: int) -> None:
    if parts == 2 and onesided:
        pytest.skip("a complex signal has no half spectrum")
    shape = [3, 4, 5, parts]
    shape[axis % 4 if axis >= 0 else axis + 4] = 96
    x = signal(tuple(shape))
    at = axis if axis >= 0 else axis + 4
    points = length or 96
    want = np.fft.fft(complex_of(x.astype(np.float64)), points, at)
    want = np.take(want, range(points // 2 + 1), at) if onesided else want
    total = np.broadcast_to(magnitudes(x, at), want.shape)
    assert off(dft(x, axis, length, onesided=onesided), want, total) <= USUAL * EPS["float32"]


@pytest.mark.sample(7)
@pytest.mark.parametrize("length", [None, 40, 95, 96, 97, 200, 254])
@pytest.mark.parametrize("bins", [9, 49, 128])
def test_inverse_of_half_a_spectrum_is_real(bins: int, length: int | None) -> None:
    x = signal((2, bins, 2))
    points = length or 2 * (bins - 1)
    arrays = [x, None if length is None else np.array(length), np.array(1)]
    (y,) = run_node("DFT", arrays, (1, 2), inverse=1, onesided=1)
    want = np.fft.irfft(complex_of(x.astype(np.float64)), points, 1) + 0j
    assert y.shape == (2, points, 1)
    assert off(y, want, 2 * magnitudes(x, 1) / points) <= USUAL * EPS["float32"]


@pytest.mark.sample(5)
@pytest.mark.parametrize("window", [None, "constant", "input"])
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize(("points", "hop"), [(16, 5), (80, 20), (131, 40), (400, 160)])
def test_frames(points: int, hop: int, onesided: int, parts: int, window: str | None) -> None:
    if parts == 2 and onesided:
        pytest.skip("a complex signal has no half spectrum")
    x = signal((2, 1000, parts))
    weights = None if window is None else np.hanning(points).astype(np.float32)
    arrays = [x, np.array(hop), weights, np.array(points)]
    constants = (1, 2, 3) if window == "constant" else (1, 3)
    (y,) = run_node("STFT", arrays, constants, onesided=onesided)
    frames = np.lib.stride_tricks.sliding_window_view(complex_of(x.astype(np.float64)), points, 1)[:, ::hop]
    frames = frames if weights is None else frames * weights.astype(np.float64)
    want = np.fft.fft(frames)[..., : points // 2 + 1 if onesided else points]
    assert off(y, want, np.abs(frames).sum(-1, keepdims=True)) <= USUAL * EPS["float32"]


def test_frames_of_an_open_signal() -> None:
    model = one_node("STFT", [signal((1, 1000, 1)), np.array(64), np.hanning(128).astype(np.float32)], (1, 2), 1, 17)
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "samples"
    model.graph.output[0].type.tensor_type.ClearField("shape")
    session = lb.Session(lb.compile(model), num_threads=1)
    for samples in (128, 700, 1500):
        x = signal((1, samples, 1), seed=samples)
        frames = np.lib.stride_tricks.sliding_window_view(x[..., 0].astype(np.float64), 128, 1)[:, ::64]
        frames = frames * np.hanning(128).astype(np.float32).astype(np.float64)
        (y,) = session(x)
        assert off(np.asarray(y), np.fft.rfft(frames), np.abs(frames).sum(-1, keepdims=True)) <= USUAL * EPS["float32"]


@pytest.mark.sample(2)
@pytest.mark.parametrize("attributes", [{}, {"inverse": 1, "onesided": 1}])
@pytest.mark.parametrize("points", [16, 160, 509])
def test_open_extents_are_cut_or_get_zeros(points: int, attributes: dict[str, int]) -> None:
    model = one_node("DFT", [signal((2, 3, 2)), np.array(points), np.array(1)], (1, 2), 1, 20, **attributes)
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "samples"
    session = lb.Session(lb.compile(model), num_threads=1)
    for samples in (1, points // 2, points // 2 + 1, points // 2 + 2, points, points + 7):
        x = signal((2, samples, 2))
        z = complex_of(x.astype(np.float64))
        want = np.fft.irfft(z, points, 1) + 0j if attributes else np.fft.fft(z, points, 1)
        total = magnitudes(x, 1) * (2 / points if attributes else 1)
        assert off(np.asarray(session(x)[0]), want, total) <= USUAL * EPS["float32"]


def test_long_transforms_have_short_tables(tmp_path: Path) -> None:
    model = one_node("DFT", [signal((1, 16384, 2)), None, np.array(1)], (2,), 1, 20)
    file = tmp_path / "long.lbx"
    lb.compile(model).save(file)
    assert file.stat().st_size < 1 << 20


@pytest.mark.parametrize(("op", "opset"), [("DFT", 17), ("DFT", 20), ("STFT", 17)])
def test_the_declared_bound_is_of_all_points(op: str, opset: int) -> None:
    declared = accuracy_of("", op, opset)
    assert isinstance(declared, Accuracy)
    assert declared.sums
    assert declared.ulp >= USUAL
