"""A check that this machine has the memory that a program needs, before any of it is allocated."""

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


def check_memory(
    executable: Executable,
    bindings: Sequence[DeviceBinding],
    threads: int,
    arena: ProgramArena | None,
    limit: int | None,
) -> None:
    """Raises OutOfMemoryError where ``executable`` in ``bindings`` needs more host memory than there is, or than
    ``limit``.

    The bytes counted are those for activations and the temporaries of ``threads``; inputs and outputs may be the
    caller's own. Memory that ``arena`` has already is not counted against the machine, but against ``limit``.
    """
    held = [] if arena is None else arena.pieces
    storages = [storage for storage in ins.storages(executable.main.instructions) if not storage.shape]
    on_host = [
        (storage.nbytes, held[number] if number < len(held) else 0)
        for number, storage in enumerate(storages)
        if 0 <= storage.vdevice < len(bindings) and bindings[storage.vdevice].is_host  # binding finds that
    ]
    activations, growth = sum(size for size, _ in on_host), sum(max(0, size - has) for size, has in on_host)
    scratch = executable.scratch_bytes * threads
    name = executable.metadata.get("model", "the program")
    if growth + scratch < NOTICED and limit is None:
        return
    subject = (
        f"a run of {name!r} ({activations:,} bytes for activations, {scratch:,} for temporaries of {threads} threads"
        f"{_largest(executable)})"
    )
    way_out = "end other programs, compile for smaller shapes, give smaller inputs, or use fewer threads"
    with limited_to(limit):
        check_limit(activations + scratch, subject, way_out)
    check_available(growth + scratch, subject, way_out)


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
