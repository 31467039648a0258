"""Operators of the domain ``landbridge``: numpy's linear algebra over matrices [*B, M, N], in float32 at least.

A result that does not exist, such as the inverse of a singular matrix, is NaN. The second result of operators that have
one is 1 there and 0 elsewhere, like a code of LAPACK.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from landbridge.operators import Array, HostValue, Results, host_operator
from landbridge.sizes.size import Extent


def _wide(x: Array) -> Array:
    return x if x.dtype in (np.float32, np.float64) else x.astype(np.float32)


def _each(function: Callable[..., Array], *matrices: Array) -> tuple[Array, Array]:
    """Applies ``function`` to each matrix; also returns for each, [*B] of int32, whether it has no result."""
    batch = np.broadcast_shapes(*(x.shape[:-2] for x in matrices))
    dtype = matrices[-1].dtype
    try:
        found, info = function(*map(_wide, matrices)), np.zeros(batch, np.int32)
    except np.linalg.LinAlgError:
        rows = [np.broadcast_to(_wide(x), (*batch, *x.shape[-2:])).reshape(-1, *x.shape[-2:]) for x in matrices]
        parts = [_or_none(function, *each) for each in zip(*rows, strict=True)]
        info = np.array([part is None for part in parts], np.int32).reshape(batch)
        blank = np.full(matrices[-1].shape[-2:], np.nan, rows[-1].dtype)
        found = np.stack([blank if part is None else part for part in parts]).reshape(*batch, *blank.shape)
    return found.astype(dtype), info


def _or_none(function: Callable[..., Array], *matrices: Array) -> Array | None:
    try:
        return function(*matrices)
    except np.linalg.LinAlgError:
        return None


def _square(a: HostValue, **_: int) -> Results:
    return [(a.shape, a.dtype), (a.shape[:-2], "int32")]


@host_operator("landbridge", "Inverse", results=_square)
def inverse(a: Array) -> tuple[Array, Array]:
    """Returns the inverse of each, and which have none."""
    return _each(np.linalg.inv, a)


@host_operator("landbridge", "Cholesky", results=_square)
def cholesky(a: Array, *, upper: int) -> tuple[Array, Array]:
    """Returns L with L L^T = ``a``, or the transpose of L; and which matrices are not positive definite.

    The other half of ``a`` is not read.
    """
    found, info = _each(np.linalg.cholesky, _transposed(a) if upper else a)
    return (_transposed(found) if upper else found), info


def _transposed(x: Array) -> Array:
    return np.ascontiguousarray(np.swapaxes(x, -1, -2))


def _of_both(a: HostValue, b: HostValue, **_: int) -> list[Extent | None]:
    """Returns the batch dimensions of both, None where they are not known yet."""
    most = max(len(a.shape), len(b.shape)) - 2
    ones: list[Extent] = [1] * most
    first, second = ([*ones, *x.shape[:-2]][-most:] if most else [] for x in (a, b))
    pairs = zip(first, second, strict=True)
    return [one if one == other or other == 1 else other if one == 1 else None for one, other in pairs]


def _solved(a: HostValue, b: HostValue, **_: int) -> Results:
    batch = _of_both(a, b)
    return [([*batch, *b.shape[-2:]], b.dtype), (batch, "int32")]


@host_operator("landbridge", "Solve", results=_solved)
def solve(a: Array, b: Array, *, left: int) -> tuple[Array, Array]:
    """Returns the X of ``a`` X = ``b`` where ``left``, else of X ``a`` = ``b``; and for which matrices X is not
    unique.
    """
    found, info = _each(np.linalg.solve, a, b) if left else _each(np.linalg.solve, _transposed(a), _transposed(b))
    return (found if left else _transposed(found)), info


@host_operator("landbridge", "SolveTriangular", results=lambda a, b, **_: _solved(a, b)[:1])
def solve_triangular(a: Array, b: Array, *, upper: int, left: int, unit: int) -> Array:
    """Solves as ``solve`` with one triangle of ``a``, with ones on its diagonal where ``unit``."""
    triangle = np.triu(a) if upper else np.tril(a)
    if unit:
        places = np.arange(min(a.shape[-2:]))
        triangle[..., places, places] = 1
    return solve(triangle, b, left=left)[0]


def _least(m: Extent, n: Extent) -> Extent | None:
    return m if m == n else min(m, n) if isinstance(m, int) and isinstance(n, int) else None


def _qr_results(a: HostValue, *, mode: str) -> Results:
    *batch, m, n = a.shape
    inner = m if mode == "complete" else _least(m, n)
    q = [0] if mode == "r" else [*batch, m, inner]
    return [(q, a.dtype), ([*batch, inner, n], a.dtype)]


@host_operator("landbridge", "QR", results=_qr_results)
def qr(a: Array, *, mode: str) -> tuple[Array, Array]:
    """Returns Q with orthonormal columns and the upper triangular R whose product is ``a``; with ``mode`` "r" Q is
    empty.
    """
    if mode == "r":
        return np.zeros(0, a.dtype), np.asarray(np.linalg.qr(_wide(a), "r")).astype(a.dtype)
    q, r = np.linalg.qr(_wide(a), "complete" if mode == "complete" else "reduced")
    return q.astype(a.dtype), r.astype(a.dtype)


def _svd_results(a: HostValue, *, full: int) -> Results:
    *batch, m, n = a.shape
    least = _least(m, n)
    left, right = (m, n) if full else (least, least)
    return [([*batch, m, left], a.dtype), ([*batch, least], a.dtype), ([*batch, right, n], a.dtype)]


@host_operator("landbridge", "SVD", results=_svd_results)
def svd(a: Array, *, full: int) -> Sequence[Array]:
    """Returns U, the singular values in descending order, and V transposed."""
    return [x.astype(a.dtype) for x in np.linalg.svd(_wide(a), full_matrices=bool(full))]


@host_operator("landbridge", "Eigh", results=lambda a, **_: [(a.shape[:-1], a.dtype), (a.shape, a.dtype)])
def eigh(a: Array, *, upper: int) -> Sequence[Array]:
    """Returns ascending eigenvalues, and eigenvectors in columns, of symmetric matrices, of which half is read."""
    return [x.astype(a.dtype) for x in np.linalg.eigh(_wide(a), "U" if upper else "L")]


@host_operator("landbridge", "LogDeterminant", results=lambda a: [(a.shape[:-2], a.dtype)] * 2)
def log_determinant(a: Array) -> Sequence[Array]:
    """Computes the sign of each determinant, and the logarithm of its absolute value."""
    return [np.asarray(x).astype(a.dtype) for x in np.linalg.slogdet(_wide(a))]
