"""ProgramArena: how large pieces are, and when they are made again."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

import landbridge as lb
from landbridge.errors import OutOfMemoryError
from landbridge.process import available_memory
from landbridge.tensor import Tensor
from landbridge.vm.arena import ProgramArena

MiB = 1 << 20


class Taken:
    """The pieces of ``arena`` that were made, of a machine that maps at most ``limit`` bytes at once."""

    def __init__(self, arena: ProgramArena, *, is_lazy: bool = True, limit: int = 1 << 40) -> None:
        self._arena, self._is_lazy, self._limit = arena, is_lazy, limit
        self.sizes: list[int] = []

    def take(self, nbytes: int) -> Tensor:
        return self._arena.take(0, nbytes, self._make, is_lazy=self._is_lazy)

    def _make(self, nbytes: int) -> Tensor:
        if nbytes > self._limit:
            raise OutOfMemoryError(f"{nbytes} bytes")
        self.sizes.append(nbytes)
        return lb.empty((nbytes,), dtype="uint8")


@pytest.fixture(autouse=True)
def _free_addresses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever the machine says of its own."""
    (tmp_path / "overcommit").write_text("0\n")
    monkeypatch.setattr(available_memory, "_OVERCOMMIT", tmp_path / "overcommit")


def test_a_bound_is_taken_at_once() -> None:
    taken = Taken(ProgramArena([3 * MiB]))
    first = taken.take(100)
    assert taken.take(3 * MiB) is first and taken.sizes == [3 * MiB]


def test_lazy_memory_without_a_bound_is_reserved_then_doubled() -> None:
    arena = ProgramArena([None])
    taken = Taken(arena)
    first = taken.take(100)
    assert taken.take(128 * MiB) is first and arena.generation == 0
    taken.take(129 * MiB)
    taken.take(700 * MiB)
    assert taken.sizes == [128 * MiB, 256 * MiB, 700 * MiB] and arena.generation == 2


def test_other_memory_is_taken_as_it_is_needed() -> None:
    for most in (None, 65 * MiB):
        taken = Taken(ProgramArena([most]), is_lazy=False)
        for nbytes in (100, 50, 300):
            taken.take(nbytes)
        assert taken.sizes == [100, 300]


def test_less_is_taken_where_the_machine_does_not_map_that_much() -> None:
    taken = Taken(ProgramArena([None]), limit=MiB)
    for nbytes in (100, 150, 400):
        taken.take(nbytes)
    assert taken.sizes == [100, 200, 400]


def test_nothing_is_reserved_where_addresses_are_limited(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "overcommit").write_text("2\n")
    taken = Taken(ProgramArena([None]))
    taken.take(100)
    assert taken.sizes == [100]
    (tmp_path / "overcommit").write_text("0\n")
    monkeypatch.setattr(resource, "getrlimit", lambda what: (1 << 32, 1 << 32))
    taken = Taken(ProgramArena([None]))
    taken.take(100)
    assert taken.sizes == [100]
