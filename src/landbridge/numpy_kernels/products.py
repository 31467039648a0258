"""Matrix products, by the BLAS that numpy brings."""

from __future__ import annotations

import numpy as np

from landbridge.array_type import Array
from landbridge.numpy_kernels.registry import kernel


@kernel("MatMul", multiplies=True)
def matmul(a: Array, b: Array, out: Array) -> None:
    """The matrix product of the last two axes; of a batch with one matrix as one product."""
    if b.ndim == 2 and a.ndim > 2 and a.size and b.size:
        np.matmul(a.reshape(-1, a.shape[-1]), b, out=out.reshape(-1, out.shape[-1]))
    elif out.ndim == 0:
        out[...] = np.matmul(a, b)
    else:
        np.matmul(a, b, out=out)


@kernel("Gemm", multiplies=True)
def gemm(
    a: Array, b: Array, c: Array | None, out: Array, *, alpha: float, beta: float, transpose_a: int, transpose_b: int
) -> None:
    """alpha * a @ b + beta * c, either matrix transposed."""
    np.matmul(a.T if transpose_a else a, b.T if transpose_b else b, out=out)
    if alpha != 1:
        np.multiply(out, alpha, out=out)
    if c is not None and beta != 0:
        np.add(out, c if beta == 1 else c * beta, out=out)


@kernel("Einsum", multiplies=True)
def einsum(*arrays: Array, equation: str) -> None:
    """The sum of products that ``equation`` says; the last array is the destination."""
    out = arrays[-1]
    np.copyto(out, np.einsum(equation, *arrays[:-1], optimize=len(arrays) > 2))
