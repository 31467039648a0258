"""Checks the arguments of launches where memory allows no space twice among them."""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.device.api import Region
from landbridge.errors import InputError


def check_spaces(kernel: str, arguments: Sequence[Region], written: Sequence[bool]) -> None:
    """Raises InputError where one of the ``arguments`` that ``kernel`` writes has its space in common with another.

    ``written``: whether each of them is bound memory that is written.
    """
    spaces = [region.space for region in arguments]
    for space, writes in zip(spaces, written, strict=True):
        if writes and spaces.count(space) > 1:
            raise InputError(
                f"kernel {kernel!r} would write an output and use another argument in one allocation of "
                f"{space.device}, whose launches take no allocation twice (one_tensor_per_space); bind Tensors that "
                "share no memory"
            )
