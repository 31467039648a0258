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
    requested = []
    inner = module._with_inner
    monkeypatch.setattr(module, "_with_inner", lambda *given: (requested.append(given[0]), inner(*given))[1])
    n = dimension("n")
    size: Extent = n + 2
    number: Any = 9
    for iteration in range(12):
        size = (size + iteration) // 2 * 2 + size // (3 + iteration)
        number = (number + iteration) // 2 * 2 + number // (3 + iteration)
    assert isinstance(size, Size)
    assert replaced(size.terms, {"n": 7}) == number == size.at({"n": 7})
    assert len(requested) == len(set(requested)) == len(list(all_atoms(size.terms))) - 1
