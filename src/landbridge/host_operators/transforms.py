"""Fourier transforms whose number of points, axis or frames data decide.

The definitions: https://onnx.ai/onnx/operators/onnx__DFT.html, https://onnx.ai/onnx/operators/onnx__STFT.html
"""

from __future__ import annotations

import numpy as np

from landbridge.host_operators.reshaping import open_shape, whole
from landbridge.operators import Array, HostValue, Results, host_operator


def _complex(x: Array) -> Array:
    """Returns the last axis, real parts or pairs of parts, as complex numbers."""
    return x[..., 0].astype(np.complex128) if x.shape[-1] == 1 else x[..., 0] + 1j * x[..., 1].astype(np.float64)


def _parts(x: Array, like: Array) -> Array:
    return np.stack([x.real, x.imag], -1).astype(like.dtype)


def _dft_results(x: HostValue, *_: HostValue | None, **__: int) -> Results:
    return [open_shape(len(x.shape), x.dtype)]


@host_operator("", "DFT", since=20, results=_dft_results)
def dft(
    x: Array, length: Array | None = None, axis: Array | None = None, *, inverse: int = 0, onesided: int = 0
) -> Array:
    """Computes the transform along ``axis``, of ``length`` points: truncated or zero-padded."""
    (at,) = [-2] if axis is None else whole(axis)
    at %= x.ndim
    if inverse and onesided:
        points = 2 * (x.shape[at] - 1) if length is None else whole(length)[0]
        return np.fft.irfft(_complex(x), points, at)[..., None].astype(x.dtype)
    points = x.shape[at] if length is None else whole(length)[0]
    found = (np.fft.ifft if inverse else np.fft.fft)(_complex(x), points, at)
    if onesided:
        found = np.take(found, range(points // 2 + 1), at)
    return _parts(found, x)


@host_operator("", "STFT", since=17, results=lambda x, *_, **__: [((x.shape[0], None, None, 2), x.dtype)])
def stft(
    x: Array, step: Array, window: Array | None = None, length: Array | None = None, *, onesided: int = 1
) -> Array:
    """Computes transforms of windows every ``step`` elements: [batch, frames, bins, 2]."""
    (hop,) = whole(step)
    (points,) = window.shape if window is not None else whole(length if length is not None else np.array(x.shape[1]))
    if hop < 1 or not 0 < points <= x.shape[1]:
        raise ValueError(
            f"frame_step is {hop} and a frame has {points} elements; from 1 on, and up to {x.shape[1]} are legal"
        )
    signal = x.astype(np.complex128) if x.ndim == 2 else _complex(x)
    frames = np.lib.stride_tricks.sliding_window_view(signal, points, 1)[:, ::hop]
    found = np.fft.fft(frames if window is None else frames * window.astype(np.float64))
    return _parts(found[..., : points // 2 + 1] if onesided else found, x)
