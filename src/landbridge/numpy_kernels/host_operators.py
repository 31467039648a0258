"""Calls of host operators, which are numpy functions too, as kernels of first programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from landbridge.array_type import Array
from landbridge.errors import BindError
from landbridge.numpy_kernels.registry import kernel
from landbridge.operators import REGISTRY


@kernel("HostOperator", multiplies=True)
def host_operator(*arrays: Array | None, operator: str, results: int, options: Mapping[str, Any]) -> None:
    """Calls the host operator that programs call ``operator``, with these ``options`` as its attributes.

    Of ``arrays`` the last ``results`` are the destinations. Raises BindError where there is no such operator.
    """
    found = REGISTRY.called(operator)
    if found is None:
        raise BindError(f"the program calls {operator!r}, which this version lacks; compile the model again")
    operands, destinations = arrays[:-results], arrays[-results:]
    for out, value in zip(destinations, found.bound(options)(*operands), strict=True):
        assert out is not None
        np.copyto(out, value)
