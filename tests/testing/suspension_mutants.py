"""Mutants of suspension."""

from __future__ import annotations

from tests.testing.mutants import Correct


class ForgetsWhileSuspended(Correct):
    """Memory is lost while the device is suspended, and resume() says that it is retained."""

    caught_by = "test_suspension"

    def resume(self, index: int) -> bool:
        for space in tuple(self._blocks.values()):
            space.handle.data[:] = 0
        return super().resume(index)


class AnswersLikeAnIoctl(Correct):
    """resume() returns 0 where all went well."""

    caught_by = "test_suspension"

    def resume(self, index: int) -> bool:
        return 0  # type: ignore[return-value]


class StaysAsleep(Correct):
    """Copies do nothing after the device was suspended."""

    caught_by = "test_suspension"
    asleep = False

    def suspend(self, index: int) -> None:
        self.asleep = True

    def copy_data_from_to(self, src, dst, nbytes, stream, keep_alive):  # type: ignore[no-untyped-def]
        return super().copy_data_from_to(src, dst, 0 if self.asleep else nbytes, stream, keep_alive)
