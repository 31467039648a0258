"""Translates torch.linalg to host operators; results that only gradients need are copies of the first result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onnxscript import opset18 as op

from landbridge.frontend.torch.custom_operators import custom_operator
from landbridge.frontend.torch.values import ints

_INFO = "tensor(int32)"


def translations() -> dict[Any, Callable[..., Any]]:
    """Returns the translations, for ``torch.onnx.export(custom_translation_table=)``."""
    import torch

    aten = torch.ops.aten
    return {
        # Variants that raise errors are translated as a whole, because ONNX has no operator for torch's check of the
        # error code.
        aten.linalg_inv.default: lambda a: _inverse(a)[0],
        aten.inverse.default: lambda a: _inverse(a)[0],
        aten.linalg_inv_ex.default: _inverse,
        aten.linalg_cholesky.default: lambda a, upper=False: _cholesky(a, upper)[0],
        aten.cholesky.default: lambda a, upper=False: _cholesky(a, upper)[0],
        aten.linalg_cholesky_ex.default: _cholesky,
        aten.linalg_solve.default: lambda a, b, left=True: _solve(a, b, left)[0],
        aten._linalg_solve_ex.default: _solve,
        aten.linalg_solve_triangular.default: _solve_triangular,
        aten.linalg_qr.default: lambda a, mode="reduced": custom_operator("QR", 1, ("T", "T"), mode="")(a, mode=mode),
        aten._linalg_svd.default: _svd,
        aten._linalg_eigh.default: _eigh,
        aten._linalg_slogdet.default: _log_determinant,
    }


def _inverse(a: Any, check_errors: bool = False) -> tuple[Any, Any]:
    return custom_operator("Inverse", 1, ("T", _INFO))(a)  # type: ignore[no-any-return]


def _cholesky(a: Any, upper: bool = False, check_errors: bool = False) -> tuple[Any, Any]:
    return custom_operator("Cholesky", 1, ("T", _INFO), upper=0)(a, upper=int(upper))  # type: ignore[no-any-return]


def _solve(a: Any, b: Any, left: bool = True, check_errors: bool = False) -> tuple[Any, ...]:
    is_vector = len(b.shape) == 1 or (len(b.shape) == len(a.shape) - 1 and b.shape == a.shape[:-1])
    columns = op.Unsqueeze(b, ints(-1)) if is_vector else b
    found, info = custom_operator("Solve", 2, ("T", _INFO), left=0)(a, columns, left=int(left))
    result = op.Squeeze(found, ints(-1)) if is_vector else found
    return result, op.Identity(result), op.Identity(result), info


def _solve_triangular(a: Any, b: Any, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    operator = custom_operator("SolveTriangular", 2, upper=0, left=0, unit=0)
    return operator(a, b, upper=int(upper), left=int(left), unit=int(unitriangular))


def _svd(a: Any, full_matrices: bool = False, compute_uv: bool = True, driver: str | None = None) -> tuple[Any, ...]:
    return custom_operator("SVD", 1, ("T", "T", "T"), full=0)(a, full=int(full_matrices))  # type: ignore[no-any-return]


def _eigh(a: Any, UPLO: str = "L", compute_v: bool = True) -> tuple[Any, ...]:  # noqa: N803 - as torch calls it
    return custom_operator("Eigh", 1, ("T", "T"), upper=0)(a, upper=int(UPLO.upper() == "U"))  # type: ignore[no-any-return]


def _log_determinant(a: Any) -> tuple[Any, ...]:
    sign, log = custom_operator("LogDeterminant", 1, ("T", "T"))(a)
    return sign, log, op.Identity(sign), op.Identity(sign)
