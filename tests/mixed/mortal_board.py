"""A board in another process that dies, hangs, loses what it holds, and is suspended."""

from __future__ import annotations

import os
import signal
from typing import ClassVar

from landbridge.device.api import Event
from landbridge.errors import ContextLostError, DeviceLostError, InputError, JobTimeoutError
from tests.mixed.remote_board import RemoteBoardWithEvents


class MortalBoard(RemoteBoardWithEvents):
    """It is opened with ``job_timeout``, in seconds: a job that takes longer is ended, by the firmware if that can
    (``ends_jobs``), or with everything that is on the board.
    """

    name = "mortal"
    ends_jobs = True
    retains_memory = True

    #: Memory of past lives, whose addresses nothing else gets while tensors of those lives may be there.
    past: ClassVar[list[object]] = []

    def __init__(self) -> None:
        super().__init__()
        self.past.append(self._cache)
        self.job_timeout: float | None = None
        self.lost_context = ""
        self.log: list[str] = []
        self.jobs: list[_Job] = []

    def open(self, index: int, *, job_timeout: float | None = None) -> None:
        if job_timeout is not None and not 0 < job_timeout < 1e6:
            raise InputError(f"mortal: job_timeout is {job_timeout}; legal: seconds over 0")
        if self.process.poll() is not None:
            super().__init__()
            self._submitted = self._reported = 0
        self.job_timeout, self.lost_context, self.jobs = job_timeout, "", []

    def close(self, index: int = 0) -> None:
        self.process.kill()
        self.process.wait(30)

    def reset(self, index: int) -> None:
        self._cache[:] = self._board[:] = bytes(len(self._board))
        self.lost_context = ""

    def suspend(self, index: int) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def resume(self, index: int) -> bool:
        if not self.retains_memory:
            self._board[:] = bytes(len(self._board))
        self.process.send_signal(signal.SIGCONT)
        return self.retains_memory

    def free_data_space(self, space: object) -> None:
        self.log.append("free")

    def reported(self, timeout: float) -> int:
        try:
            found = super().reported(timeout)
        except AssertionError:
            raise self._loss() from None
        if self.lost_context:
            raise self._loss()
        return found

    def _loss(self) -> DeviceLostError:
        return ContextLostError(self.lost_context) if self.lost_context else DeviceLostError("its process has ended")

    def _write(self, line: str) -> None:
        try:
            super()._write(line)
        except BrokenPipeError:
            raise self._loss() from None

    def _queued(self) -> Event:
        self.jobs.append(_Job(self, super()._queued()))
        return self.jobs[-1]

    def end_job(self) -> None:
        """Ends the job that hangs; the error says what became of the rest."""
        if not self.ends_jobs:
            self.lost_context = f"a job took longer than {self.job_timeout} s, and was ended with all that is on it"
            os.kill(self.process.pid, signal.SIGKILL)
            raise ContextLostError(self.lost_context)
        self.release()
        raise JobTimeoutError(f"it took longer than job_timeout={self.job_timeout} s; give it more, or smaller inputs")


class _Job:
    """A launch that is ended when it takes too long."""

    def __init__(self, board: MortalBoard, event: Event) -> None:
        self._board, self._event = board, event
        self._error: JobTimeoutError | None = None

    def query(self) -> bool:
        return self._event.query()

    def synchronize(self, timeout: float | None = None) -> bool:
        """Waits for the jobs in their order; the one that takes too long has the error, whoever waits."""
        limit = self._board.job_timeout
        if limit is None or (timeout is not None and timeout < limit):
            return self._event.synchronize(timeout)
        jobs = self._board.jobs
        while self in jobs:
            job = jobs[0]
            try:
                if not job._event.synchronize(limit):
                    self._board.end_job()
            except JobTimeoutError as error:
                job._error = error
            del jobs[0]
        if self._error is not None:
            raise self._error
        return self._event.synchronize(timeout)
