"""Tests of fences: queues that wait for files of others, and files that say when a queue's work is done."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

from landbridge.device.api import Region, Stream
from landbridge.device.protocols import ExternalFences
from landbridge.testing.conformance.base import ConformanceCase, expect, pattern

_BYTES = 1024
_DELAY = 0.1  # seconds until the other side signals


class FenceConformance(ConformanceCase):
    """Tests ``ExternalFences``."""

    def test_work_waits_for_a_fence(self) -> None:
        """wait_fence: work queued on the stream from then on begins when the fence is signalled; the caller may close
        the descriptor at once."""
        fences, source, target = self.ability(ExternalFences), self.alloc(_BYTES), self.alloc(_BYTES)
        with self.streams(1) as (stream,):
            for seed, queue in enumerate(dict.fromkeys((None, stream))):
                self.write(source, pattern(_BYTES, seed))
                self.write(target, pattern(_BYTES, seed + 50))
                signalled = list[float]()
                with self._fence(fences, queue) as file:
                    timer = Timer(_DELAY, lambda done=signalled, file=file: _signal(file, done))
                    timer.start()
                    self.wait(self.copy(Region(source), Region(target), _BYTES, queue))
                    over = time.monotonic()
                    timer.join()
                expect(over >= signalled[0], "work behind a fence was done before the fence was signalled")
                expect(self.read(target, _BYTES) == pattern(_BYTES, seed), "work behind a fence was not done")

    def test_a_wait_for_a_fence_returns_at_once(self) -> None:
        """wait_fence returns at once, and work on other streams goes on."""
        fences = self.ability(ExternalFences)
        source, target = self.alloc(_BYTES), self.alloc(_BYTES)
        self.write(source, pattern(_BYTES, 1))
        with self.streams(2) as (stream, other):
            signalled = list[float]()
            file = os.eventfd(0, os.EFD_CLOEXEC)
            timer = Timer(self.patience / 2, lambda: _signal(file, signalled))  # a wait that blocks ends with it
            timer.start()
            fences.wait_fence(self.device.index, stream, file)
            expect(not signalled, "wait_fence returned when the fence was signalled, not at once")
            if stream is not None:
                self.wait(self.copy(Region(source), Region(target), _BYTES, other))
                expect(not signalled, "work on another stream waited for the fence")
                expect(self.read(target, _BYTES) == pattern(_BYTES, 1), "a copy did not happen")
            timer.cancel()
            timer.join()
            _signal(file, signalled)
            self.wait(self.copy(Region(source), Region(target), _BYTES, stream))
            os.close(file)

    def test_a_fence_says_when_work_is_done(self) -> None:
        """signal_fence: a new descriptor that polls as readable when the work queued so far is done, and stays so."""
        fences, source, target = self.ability(ExternalFences), self.alloc(_BYTES), self.alloc(_BYTES)
        self.write(source, pattern(_BYTES, 7))
        with self.streams(1) as (stream,), self._fence(fences, stream) as before:
            timer = Timer(_DELAY, lambda: _signal(before, []))
            timer.start()
            event = self.copy(Region(source), Region(target), _BYTES, stream)
            begun, done = time.monotonic(), fences.signal_fence(self.device.index, stream)
            try:
                is_early = bool(select.select([done], [], [], _DELAY / 4)[0]) and timer.is_alive()
                expect(not is_early, "a fence is signalled before the work that it is for")
                found = [bool(select.select([done], [], [], self.patience)[0]) for _ in range(2)]
                timer.join()
                expect(found[0], f"a fence is not signalled {time.monotonic() - begun:.1f} s after its work may begin")
                expect(found[1], "a fence is signalled no more")
                self.wait(event)
                expect(self.read(target, _BYTES) == pattern(_BYTES, 7), "a fence is signalled before its work")
            finally:
                os.close(done)

    @contextmanager
    def _fence(self, fences: ExternalFences, stream: Stream | None) -> Iterator[int]:
        """Makes ``stream`` wait for a fence, whose own descriptor is closed; yields another one to signal it by."""
        given = os.eventfd(0, os.EFD_CLOEXEC)
        mine = os.dup(given)
        try:
            try:
                fences.wait_fence(self.device.index, stream, given)
            finally:
                os.close(given)
            yield mine
        finally:
            os.eventfd_write(mine, 1)
            os.close(mine)


def _signal(file: int, done: list[float]) -> None:
    done.append(time.monotonic())
    os.eventfd_write(file, 1)
