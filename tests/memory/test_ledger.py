"""The ledger sees what moves, in any thread; no_copies stops it before it moves."""

from __future__ import annotations

from threading import Thread
from typing import Any

import numpy as np
import pytest

from landbridge.errors import CopyForbiddenError, InputError
from landbridge.memory.ledger import (
    Move,
    announce,
    copy_array,
    is_active,
    ledger,
    no_copies,
    record_kernel_moves,
)

LABELS: Any = {"cause": "test", "tensor": "x", "source": "here", "destination": "there"}


def test_moves_are_collected_while_open() -> None:
    src, dst = np.arange(6, dtype=np.int16), np.zeros(6, np.int16)
    assert not is_active()
    with ledger() as outer:
        assert is_active()
        copy_array(dst, src, **LABELS)
        with ledger() as inner:
            copy_array(dst[:2], src[:2], **LABELS)
        copy_array(dst[:2], src[:2], **LABELS)
    copy_array(dst, src, **LABELS)
    assert inner.entries == [Move(4, "test", "x", "here", "there")]
    assert [move.nbytes for move in outer] == [12, 4, 4]
    assert (outer.total_bytes, outer.kernel_bytes, len(outer)) == (20, 0, 3)
    assert not is_active()
    np.testing.assert_array_equal(dst, src)


def test_kernel_moves_are_counted_apart_and_allowed() -> None:
    with no_copies(), ledger() as moves:
        record_kernel_moves(100, tensor="t", device="cpu:0")
    assert moves.entries == [Move(100, "kernel:reorder", "t", "cpu:0", "cpu:0")]
    assert (moves.total_bytes, moves.kernel_bytes) == (0, 100)


@pytest.mark.parametrize("worker", [False, True])
def test_no_copies_raises_before_any_byte_moves(worker: bool) -> None:
    src, dst = np.ones(4), np.zeros(4)
    errors: list[Exception] = []

    def attempt() -> None:
        for copy in (
            lambda: copy_array(dst, src, **LABELS),
            lambda: announce(8, **LABELS),
        ):
            try:
                copy()
            except CopyForbiddenError as error:
                errors.append(error)

    with no_copies(), no_copies(), ledger() as moves:
        if worker:
            thread = Thread(target=attempt)
            thread.start()
            thread.join()
        else:
            attempt()
    assert len(errors) == 2
    assert "32 bytes of x would be copied from here to there" in str(errors[0])
    assert not dst.any()
    assert moves.entries == []
    copy_array(dst, src, **LABELS)
    assert dst.all()


def test_nothing_moves_nothing_is_entered() -> None:
    array = np.arange(8.0)
    with no_copies(), ledger() as moves:
        copy_array(array, array, **LABELS)
        copy_array(array[::2], array[::2], **LABELS)
        copy_array(np.zeros((0, 2)), np.zeros((0, 2)), **LABELS)
    assert moves.entries == []


def test_strides() -> None:
    src = np.arange(24, dtype=np.float32).reshape(4, 6)
    dst = np.zeros((3, 4), np.float32)
    with ledger() as moves:
        copy_array(dst, src[:, ::2].T, **LABELS)
    np.testing.assert_array_equal(dst, src[:, ::2].T)
    assert moves.total_bytes == dst.nbytes


def test_interleaved_is_not_overlap() -> None:
    array = np.arange(8)
    copy_array(array[1::2], array[::2], **LABELS)
    assert array.tolist() == [0, 0, 2, 2, 4, 4, 6, 6]


def test_illegal_copies() -> None:
    array = np.arange(8)
    frozen = np.frombuffer(bytes(64), np.int64)
    for dst, src, message in [
        (array[1:], array[:-1], "overlaps its destination"),
        (np.zeros(7, int), array, r"shape \(8,\), its destination \(7,\)"),
        (np.zeros(8, np.int32), array, "never cast silently"),
        (frozen, array, "read-only destination"),
    ]:
        before = dst.copy()
        with ledger() as moves, pytest.raises(InputError, match=message):
            copy_array(dst, src, **LABELS)
        np.testing.assert_array_equal(dst, before)
        assert moves.entries == []


def test_casting_when_requested() -> None:
    dst = np.zeros(3, np.int32)
    copy_array(dst, np.array([1.0, 2.0, 3.0]), **LABELS, casting="unsafe")
    assert dst.tolist() == [1, 2, 3]
