"""Question: a comparison of Sizes that the bounds of their dimensions leave open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from landbridge.sizes.size import Extent


@dataclass(frozen=True)
class Question:
    """Whether ``left`` is ``right``, or at least ``right``; ``needed``: where it is not, the model cannot be run."""

    left: Extent
    right: Extent
    equal: bool = False
    needed: bool = False
