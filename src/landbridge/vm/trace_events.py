"""TraceEvent and Trace: the events of a traced run, and their forms for people and for Perfetto."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from landbridge.records import record

if TYPE_CHECKING:
    from landbridge.timeline import Span

#: The lane of the host's own steps.
HOST_LANE = "cpu"


@record(frozen=True)
class TraceEvent:
    """One kernel or host step: times in microseconds from the start of the run; ``tasks`` is 0 on the host.

    ``lane`` says what ran it: ``"cpu"``, or the device of the kernel, which may work at the same time as the CPU. A
    device's kernels are launched one by one, and ``tasks`` are workgroups.

    ``function``: the kernel's function of the program; for a device's kernel its name in the code; empty on the host.

    ``memory``: for each memory, (bytes that hold a value during a kernel, bytes planned); empty on the host.
    """

    name: str
    category: str
    start_us: float
    duration_us: float
    tasks: int = 0
    memory: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    lane: str = HOST_LANE
    function: str = ""


class Trace(list[TraceEvent]):
    """The events of a run of the program called ``title``. A notebook shows the picture of ``landbridge trace
    --svg``.
    """

    def __init__(self, events: Iterable[TraceEvent], title: str) -> None:
        super().__init__(events)
        self.title = title

    def spans(self) -> list[Span]:
        """Returns the events as spans of a timeline."""
        from landbridge.timeline import Span  # only pictures need it

        return [Span(e.name, e.lane, e.start_us, e.duration_us, e.tasks, e.category == "kernel") for e in self]

    def _repr_html_(self) -> str:
        from landbridge.plan_chart.picture import embedded
        from landbridge.timeline.svg import render_svg

        busy = sum(event.duration_us for event in self)
        text = f"Timeline of {self.title}: {len(self)} kernels and host steps, {busy / 1e3:.3f} ms"
        return embedded(render_svg(self.spans(), self.title), text)


def chrome_trace(events: Sequence[TraceEvent], process: str) -> str:
    """Returns ``events`` as JSON text in the Trace Event Format that chrome://tracing and Perfetto read.

    Each memory has one counter, whose two parts, in use and unused, add up to what was planned.
    """
    lanes = list(dict.fromkeys((HOST_LANE, *(event.lane for event in events))))
    named = [
        {"name": "process_name", "ph": "M", "pid": 0, "tid": 0, "args": {"name": process}},
        *(
            {"name": "thread_name", "ph": "M", "pid": 0, "tid": number, "args": {"name": lane}}
            for number, lane in enumerate(lanes)
        ),
    ]
    complete = [
        {
            "name": event.name,
            "cat": event.category,
            "ph": "X",
            "ts": event.start_us,
            "dur": event.duration_us,
            "pid": 0,
            "tid": lanes.index(event.lane),
            "args": {"tasks": event.tasks},
        }
        for event in events
    ]
    counters = [
        {
            "name": place,
            "ph": "C",
            "ts": event.start_us,
            "pid": 0,
            "args": {"in use": live, "unused": planned - live},
        }
        for event in events
        for place, (live, planned) in event.memory.items()
    ]
    return json.dumps({"traceEvents": [*named, *complete, *counters], "displayTimeUnit": "ms"}, indent=1)
