"""MemoryCheck: checks that this machine has the memory that a program needs, before any of it is touched."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from landbridge.dtypes import dtype
from landbridge.errors import InputError
from landbridge.executable import instructions as ins
from landbridge.executable.executable import Executable
from landbridge.process.available_memory import NOTICED, check_available, check_limit, limited_to
from landbridge.vm.arena import ProgramArena
from landbridge.vm.device_binding import DeviceBinding


class MemoryCheck:
    """Checks the memory of runs of ``executable`` in ``bindings``, on ``threads`` threads: against ``limit`` (None: no
    limit), and what is new for ``arena`` against what the machine has.

    The bytes counted are those for activations and the temporaries of all threads; inputs and outputs may be the
    caller's own.
    """

    def __init__(
        self,
        executable: Executable,
        bindings: Sequence[DeviceBinding],
        threads: int,
        arena: ProgramArena,
        limit: int | None,
    ) -> None:
        self._threads, self._arena, self._limit = threads, arena, limit
        self._scratch = executable.scratch_bytes * threads
        #: The numbers of the storages that are on the host, of those that are no rows.
        self.on_host = [
            number
            for number, storage in enumerate(_storages(executable))
            if 0 <= storage.vdevice < len(bindings) and bindings[storage.vdevice].is_host  # binding finds that
        ]

    @property
    def allowed(self) -> int:
        """Returns the bytes of activations on the host that need no further ``check``."""
        allowed = self._arena.checked_bytes + max(0, NOTICED - 1 - self._scratch)
        return allowed if self._limit is None else min(allowed, self._limit - self._scratch)

    def check(self, executable: Executable) -> None:
        """Raises OutOfMemoryError where runs at the sizes of ``executable``, the program with fixed sizes, need more
        than is allowed or there is.
        """
        storages = _storages(executable)
        activations = sum(storages[number].nbytes for number in self.on_host)
        growth = max(0, activations - self._arena.checked_bytes)
        if self._limit is None and growth + self._scratch < NOTICED:
            return
        name = executable.metadata.get("model", "the program")
        subject = (
            f"a run of {name!r} ({activations:,} bytes for activations, {self._scratch:,} for temporaries of "
            f"{self._threads} threads{_largest(executable)})"
        )
        way_out = "end other programs, compile for smaller shapes, give smaller inputs, or use fewer threads"
        with limited_to(self._limit):
            check_limit(activations + self._scratch, subject, way_out)
        check_available(growth + self._scratch, subject, way_out)
        self._arena.checked_bytes += growth


def _storages(executable: Executable) -> list[ins.AllocStorage]:
    """Returns the storages of ``executable`` that are no rows, in order."""
    return [storage for storage in ins.storages(executable.main.instructions) if not storage.shape]


def _largest(executable: Executable) -> str:
    """Returns a text that names the largest planned tensor; an empty one where there is none."""
    tensors = [each for each in ins.flattened(executable.main.instructions) if isinstance(each, ins.AllocTensor)]
    if not tensors:
        return ""
    largest = max(tensors, key=_nbytes)
    name = f" {largest.name!r}" if largest.name else ""
    return f"; the largest tensor is{name} {largest.dtype}{list(largest.shape)}"


def _nbytes(tensor: ins.AllocTensor) -> int:
    try:
        return prod(tensor.shape) * dtype(tensor.dtype).itemsize
    except InputError:  # binding refuses that
        return 0
