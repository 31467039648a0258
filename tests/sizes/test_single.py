"""One object of equal values: by calls, copies, pickles and threads, for as long as somebody has it."""

import copy
import gc
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, dataclass, replace

import pytest

from landbridge.sizes.single import Single, remade
from landbridge.sizes.size import clamped, dimension, largest
from landbridge.sizes.terms import Symbol, atoms


@dataclass(frozen=True, eq=False)
class Point(metaclass=Single):
    """What is single here."""

    x: int
    y: int = 0

    __reduce__ = remade


@dataclass(frozen=True, eq=False)
class Location(metaclass=Single):
    """Another class with the same values."""

    x: int
    y: int = 0


def test_equal_values_are_one_object_however_they_come() -> None:
    point = Point(1, 2)
    assert Point(x=1, y=2) is point
    assert replace(Point(1, 3), y=2) is point
    assert copy.copy(point) is point
    assert copy.deepcopy([point])[0] is point
    assert pickle.loads(pickle.dumps(point)) is point


def test_others_are_others() -> None:
    assert Point(1) is not Point(2)
    assert Point(1) != Location(1)
    with pytest.raises(FrozenInstanceError):
        Point(1).x = 2  # type: ignore[misc]


def test_threads_get_one_object() -> None:
    with ThreadPoolExecutor(8) as pool:
        for number in range(50):
            points = list(pool.map(lambda n: Point(n, 77), [number] * 8))
            assert len(set(map(id, points))) == 1


def test_nobodys_is_gone() -> None:
    gone = weakref.ref(Point(5, 55))
    gc.collect()
    assert gone() is None
    assert Point(5, 55).y == 55


def test_atoms_of_sizes_are_single() -> None:
    n = dimension("n", 1, 100)
    for size in (n, (n + 3) // 7, largest(n, 20), clamped(n, 3, 9)):
        (atom, *_) = atoms(size.terms)  # type: ignore[union-attr]
        (read, *_) = atoms(pickle.loads(pickle.dumps(size)).terms)
        assert read is atom
    assert Symbol("n", 1, 100) is not Symbol("n", 1, 100, expected=8)
