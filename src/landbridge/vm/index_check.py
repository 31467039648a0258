"""The host builtin of programs compiled with ``check_indices``: kernels cannot raise, so it checks indices first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from landbridge.errors import IndexRangeError


def check_indices(args: Sequence[np.ndarray[Any, Any]], attributes: Mapping[str, object]) -> None:
    """Copy the indices ``args[0]`` to ``args[1]``; raises IndexRangeError for one that is not legal.

    ``low`` and ``high`` are the least and largest legal index: one for all, or one for each along the last axis.
    ``what`` names the node, the operator and the operand.
    """
    (indices, checked), low, high = args, np.asarray(attributes["low"]), np.asarray(attributes["high"])
    bad = (indices < low) | (indices > high)
    if bad.any():
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        legal = [int(ends[at[-1] if ends.size > 1 else 0]) for ends in (low, high)]
        raise IndexRangeError(
            f"{attributes['what']}[{', '.join(map(str, at))}] is {indices[at]}; legal: {legal[0]}..{legal[1]}. "
            f"{np.count_nonzero(bad)} of {indices.size} are out of range"
        )
    checked[...] = indices
