"""The former place of the decorator of kernels."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from landbridge.operators import kernel

__all__ = ["operator"]


def operator(*op_types: str, since: int = 1, domain: str = "") -> Callable[[Any], Any]:
    """The former form of ``landbridge.operators.kernel``, which takes the domain first."""
    warnings.warn(
        "landbridge.ops.registry.operator is deprecated; use landbridge.operators.kernel(domain, name, since=...)",
        DeprecationWarning,
        stacklevel=2,
    )
    return kernel(domain, *op_types, since=since)
