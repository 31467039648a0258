"""Terms with other values for some of what they are made of."""

from __future__ import annotations

from typing import Any

import pytest

from landbridge.sizes import replaced as module
from landbridge.sizes.replaced import replaced
from landbridge.sizes.size import Extent, Size, dimension
from landbridge.sizes.terms import all_atoms


def test_what_is_inside_of_several_is_replaced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is made of two of the one before: to replace every one where it stands would be 2**12 times."""
    asked = []
    inner = module._with_inner
    monkeypatch.setattr(module, "_with_inner", lambda *given: (asked.append(given[0]), inner(*given))[1])
    n = dimension("n")
    size: Extent = n + 2
    number: Any = 9
    for turn in range(12):
        size = (size + turn) // 2 * 2 + size // (3 + turn)
        number = (number + turn) // 2 * 2 + number // (3 + turn)
    assert isinstance(size, Size)
    assert replaced(size.terms, {"n": 7}) == number == size.at({"n": 7})
    assert len(asked) == len(set(asked)) == len(list(all_atoms(size.terms))) - 1
