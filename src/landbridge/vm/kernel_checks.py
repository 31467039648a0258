"""Host builtins of programs with ``sanitize`` or ``check_indices``: kernels cannot raise, so the host looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from landbridge.errors import IndexRangeError


def clear_report(args: Sequence[np.ndarray[Any, Any]], attributes: Mapping[str, object]) -> None:
    """Set the elements of the report ``args[0]`` (``landbridge.executable.access_report``) to 0, which is no access."""
    args[0][...] = 0


def check_accesses(args: Sequence[np.ndarray[Any, Any]], attributes: Mapping[str, Any]) -> None:
    """Raises SanitizerError where the report ``args[0]`` names an access; the report is clear afterwards.

    ``node`` and ``kernel`` name the call, ``names`` its operands. ``items`` are the bytes of an element of each
    operand, and ``nbytes`` its size, as words of the program where that depends on the sizes of a run.
    """
    (report,) = args
    if not report.any():
        return
    from landbridge.sanitizer.findings import fail

    word = int(np.flatnonzero(report)[0])
    element, (operand, writes) = int(report[word]) >> 1, divmod(word, 2)
    report[...] = 0
    verb, undone = ("store", "written") if writes else ("load", "read")
    node = f"node {attributes['node']!r}, " if attributes["node"] else ""
    where = f"in {node}kernel @{attributes['kernel']}"
    if operand == len(attributes["names"]):
        fail("out of bounds", f"a {verb} of element {element} of a temporary {where}; nothing was {undone} there")
    name, item, nbytes = (attributes[key][operand] for key in ("names", "items", "nbytes"))
    first = element * item
    within = isinstance(nbytes, int) and 0 <= first < nbytes
    outside = "outside of the row that was asked for, of" if within else "which has"
    fail(
        "out of bounds",
        f"a {verb} of bytes {first} to {first + item} of operand {operand}, {name}, {outside} {nbytes} bytes, {where}; "
        f"nothing was {undone} there",
    )


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
