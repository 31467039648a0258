"""IdentityMap: by ``is``, and no object takes the place of one that is gone."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from landbridge.identity_map import IdentityMap


def test_equal_objects_are_different_keys():
    a, b = [1.5], [1.5]
    found = IdentityMap([(a, "a")])
    found[b] = "b"
    assert (found[a], found[b], len(found)) == ("a", "b", 2)
    assert a in found and [1.5] not in found


def test_keys_need_no_hash():
    array, other = np.ones(3), np.ones(3)
    found: IdentityMap[np.ndarray, int] = IdentityMap()
    assert found.get(array) is None and found.get(array, 5) == 5
    assert (found.setdefault(array, 1), found.setdefault(array, 2)) == (1, 1)
    assert found.get(other) is None
    assert (found.pop(array), found.pop(array), len(found)) == (1, None, 0)
    with pytest.raises(KeyError):
        found[array]
    with pytest.raises(KeyError):
        del found[array]


def test_keys_stay_alive_until_they_are_removed():
    """Else a new object at the address of a key that is gone would have its value."""
    found: IdentityMap[np.ndarray, int] = IdentityMap()
    keys = []
    for number in range(100):
        key = np.empty(4)
        assert key not in found
        found[key] = number
        keys.append(weakref.ref(key))
        del key
    gc.collect()
    assert all(key() is not None for key in keys)
    assert list(found.values()) == list(range(100))
    last, number = found.popitem()
    assert last is keys[-1]() and number == 99
    copied = found.copy()
    found.clear()
    assert len(found) == 0 and len(copied) == 99
    del last, copied
    gc.collect()
    assert all(key() is None for key in keys)


def test_what_changes_a_map_does_not_disturb_who_reads_it():
    first, second = object(), object()
    found = IdentityMap([(first, 1), (second, 2)])
    for key, _ in found.items():
        del found[key]
    assert not len(found)
