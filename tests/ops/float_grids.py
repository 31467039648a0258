"""Arguments that cover a float dtype, and how far results lie from references in more precision."""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from landbridge.ops.accuracy import Accuracy, spacing

Array = np.ndarray[Any, Any]
FLOATS = {
    "float32": np.dtype(np.float32),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float64": np.dtype(np.float64),
}
_WORDS = {2: np.uint16, 4: np.uint32, 8: np.uint64}


def special(dtype: str) -> Array:
    """NaN, infinities, zeros, the ends of subnormal and normal numbers, and round numbers, of both signs."""
    kind = FLOATS[dtype]
    info = ml_dtypes.finfo(kind)
    tiny, least = float(info.tiny), float(info.smallest_subnormal)
    positive = [0, least, 3 * least, tiny - least, tiny, tiny * (1 + float(info.eps)), float(info.eps), float(info.max)]
    positive += [0.25, 0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9, 10, 100, 254.5, 255.5, 1000, np.inf, np.nan]
    positive += [2.0**k for k in (-14, -10, 23, 24, 31, 32, 52, 53, 63, 64)]
    positive += [np.pi / 4, np.pi / 2, np.pi, 1.67326324, np.sqrt(0.5), np.log(2), 88.72284, 87.33655, 103.97208]
    with np.errstate(over="ignore"):
        values = np.array(positive, np.float64).astype(kind)
    both = np.concatenate([values, -values])
    finite = both[np.isfinite(both.astype(np.float64))]
    words = _WORDS[kind.itemsize]
    near = [(finite.view(words) + words(step)).view(kind) for step in (1, -1 & int(np.iinfo(words).max))]
    return np.concatenate([both, *near])


@cache
def grid(dtype: str, count: int, seed: int = 0) -> Array:
    """Every value of a 16-bit dtype; of others the special ones and about ``count`` over all exponents and both signs,
    with random mantissas, half of them in the range where most functions bend."""
    kind = FLOATS[dtype]
    if kind.itemsize == 2:
        return _quiet(np.arange(1 << 16, dtype=np.uint16).view(kind))
    rng = np.random.default_rng(seed)
    words, bits = _WORDS[kind.itemsize], 8 * kind.itemsize
    anywhere = rng.integers(0, 1 << bits, count // 2, words, endpoint=False) if bits == 32 else rng.bytes(count * 4)
    spread = np.frombuffer(anywhere.tobytes() if bits == 32 else anywhere, words).view(kind)
    # Every exponent from 2**-30 to 2**12, and evenly from -1 to 1, from -12 to 12, and around 1 and pi/2's multiples.
    fifth = count // 10
    scale = np.exp2(rng.uniform(-30, 12, fifth)) * rng.choice([-1.0, 1.0], fifth)
    around = 1 + np.exp2(rng.uniform(-30, 0, fifth)) * rng.choice([-1.0, 1.0], fifth)
    quarters = rng.integers(-4000, 4000, fifth) * (np.pi / 2) * (1 + 2.0**-24 * rng.integers(-2, 3, fifth))
    parts = [scale, rng.uniform(-1, 1, fifth), rng.uniform(-12, 12, fifth), around, quarters]
    return _quiet(np.concatenate([special(dtype), spread, *(p.astype(kind) for p in parts)]))


def _quiet(x: Array) -> Array:
    """Signalling NaN, which C's functions may answer with NaN where they answer others with a number, as quiet ones."""
    return np.where(np.isnan(x), x.dtype.type(np.nan), x)


def pairs(dtype: str, count: int, seed: int = 0) -> tuple[Array, Array]:
    """All pairs of special values, then random ones: of any exponents, of near ones, and of small whole numbers."""
    few = special(dtype)
    rng = np.random.default_rng(seed + 1)
    kind = FLOATS[dtype]
    every = [(a.reshape(-1), b.reshape(-1)) for a, b in [np.meshgrid(few, few)]]
    pool = grid(dtype, 4 * count, seed)
    every.append((rng.choice(pool, count), rng.choice(pool, count)))
    every.append((rng.choice(pool, count // 2), rng.integers(-9, 10, count // 2).astype(kind)))
    every.append(tuple(rng.uniform(-10, 10, count // 2).astype(kind) for _ in "ab"))  # type: ignore[arg-type]
    a, b = zip(*every, strict=True)
    return np.concatenate(a), np.concatenate(b)


def wide(x: Array) -> Array:
    """Values exactly, in a dtype to compute references in: f64, or numpy's longest for f64 itself."""
    return x.astype(np.longdouble if x.dtype == np.float64 else np.float64)


def excess(got: Array, want: Array, dtype: str, declared: Accuracy, kind: str, condition: Array | None = None) -> Array:
    """How many times the stated bound each error is: at most 1 where all is well; 0 for equal ones, infinite for a NaN
    where there should be none. Numbers too large for the dtype count as the first that is."""
    allowed = declared.tolerance(want, dtype, kind, condition)
    distance = errors(got, want, dtype)
    beyond = np.where(allowed > 0, distance / np.where(allowed > 0, allowed, 1), np.inf)
    return np.where(distance == 0, 0, beyond)


def ulps(got: Array, want: Array, dtype: str) -> Array:
    """Distance in units of the last place of ``dtype``."""
    return np.asarray(errors(got, want, dtype) / spacing(want, dtype))


def errors(got: Array, want: Array, dtype: str) -> Array:
    """Distances, 0 where both are NaN or the same infinity, infinite where one alone is NaN."""
    highest = {"float16": 16, "float64": 1024}.get(dtype, 128)
    over = np.ldexp(want.dtype.type(1), highest)
    exact, close = (np.clip(v.astype(want.dtype), -over, over) for v in (want, got))
    with np.errstate(invalid="ignore"):
        distance = np.abs(close - exact)
    nan = np.isnan(exact)
    return np.where(nan | np.isnan(close), np.where(nan & np.isnan(close), 0, np.inf), distance)
