"""Arguments and results by name: ``session({"x": X})`` gives ``{"y": Y}``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from landbridge.errors import InputError
from landbridge.text.did_you_mean import did_you_mean


def in_order(subject: str, given: Mapping[Any, Any], names: Sequence[str]) -> tuple[Any, ...]:
    """Returns the values of ``given`` in the order of ``names``; raises InputError for a name too many or too few."""
    for name in given:
        if name not in names:
            raise InputError(
                f"no {subject} {name!r}{did_you_mean(str(name), names)}; legal: {', '.join(names) or 'none'}"
            )
    missing = [name for name in names if name not in given]
    if missing:
        raise InputError(f"nothing is given for {subject} {', '.join(map(repr, missing))}; it takes {', '.join(names)}")
    return tuple(given[name] for name in names)
