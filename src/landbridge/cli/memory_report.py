"""The report of ``landbridge run --memory``: planned and allocated memory of a run, and its largest holders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from landbridge.cli.output import table

if TYPE_CHECKING:
    from landbridge.executable.executable import Executable
    from landbridge.memory.allocators.base import Allocator
    from landbridge.memory.allocators.memory_cfg import MemoryCfg
    from landbridge.memory.allocators.statistics import StatisticsAllocator
    from landbridge.session import Session

#: Holders listed of each scope, the largest first.
MOST_HOLDERS = 10

_LINES = (
    ("activation_bytes", "activations"),
    ("output_bytes", "outputs"),
    ("input_bytes", "copies of inputs"),
    ("scratch_bytes", "kernel scratch of all threads"),
    ("kernel_bytes", "scratch buffers of a device's kernels"),
    ("planned_bytes", "planned, the sum of these"),
    ("constant_bytes", "copies of weights"),
    ("allocated_bytes", "expected of the allocator: planned and weights, without scratch"),
    ("peak_bytes", "counted by the allocator, at most at one time"),
)


class MemoryWatch:
    """Counts the memory that a Session takes: pass ``memory_cfg`` to it, then call ``report``.

    ``device`` and ``devices`` are the Session's own. The allocators counted are those of ``cfg``, or the process's.
    """

    def __init__(
        self, executable: Executable, device: str, devices: Mapping[str, str] | None, cfg: MemoryCfg | None
    ) -> None:
        from landbridge.memory.allocators.default import default_allocator
        from landbridge.memory.allocators.statistics import StatisticsAllocator
        from landbridge.vm.device_binding import bind_devices

        self._counted: dict[tuple[str, str], StatisticsAllocator] = {}
        for binding in bind_devices(executable, device, devices, cfg):
            key = str(binding.device), binding.kind.scope
            if key not in self._counted:
                chosen = binding.allocator or default_allocator(binding.device, binding.kind.scope)
                self._counted[key] = StatisticsAllocator(chosen)

    @property
    def memory_cfg(self) -> Mapping[str | tuple[str, str], str | Allocator]:
        """Returns the ``memory_cfg`` for the Session that is watched."""
        return dict(self._counted)

    def report(self, session: Session) -> list[dict[str, object]]:
        """Returns the JSON form: for each (device, scope) bytes planned and counted, and its largest holders."""
        from landbridge.device.registry import device
        from landbridge.memory.holders import holders

        entries = []
        for planned in session.planned_memory:
            counted = self._counted.get((planned.device, planned.scope))
            held = holders(counted.device if counted else device(planned.device), planned.scope)
            entries.append(
                {
                    **asdict(planned),
                    "planned_bytes": planned.planned_bytes,
                    "allocated_bytes": planned.allocated_bytes,
                    "peak_bytes": counted.counters.peak_bytes if counted else 0,
                    "holders": [{"nbytes": h.nbytes, "names": list(h.names)} for h in held[:MOST_HOLDERS]],
                }
            )
        return entries


def print_memory_report(entries: list[dict[str, object]]) -> None:
    """Prints ``entries`` as two tables for each (device, scope)."""
    for entry in entries:
        place = f"{entry['device']} {entry['scope']}"
        table(
            f"memory of a run on {place}", ("bytes", "for"), [(entry[key], text) for key, text in _LINES if entry[key]]
        )
        held = entry["holders"]
        assert isinstance(held, list)
        rows = [(holder["nbytes"], " and ".join(holder["names"]) or "no tensor") for holder in held]
        table(f"largest holders on {place}", ("bytes", "by"), rows)
