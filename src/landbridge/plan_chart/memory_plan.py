"""The plan of a program's memory, as a list of arenas that notebooks draw."""

from __future__ import annotations

from collections.abc import Iterable

from landbridge.plan_chart.arena import Arena
from landbridge.plan_chart.picture import embedded
from landbridge.plan_chart.svg import render_svg
from landbridge.plan_chart.units import bytes_text


class MemoryPlan(list[Arena]):
    """The arenas of the program called ``title``. A notebook shows the picture of ``landbridge plan --svg``."""

    def __init__(self, arenas: Iterable[Arena], title: str) -> None:
        super().__init__(arenas)
        self.title = title

    def _repr_html_(self) -> str:
        sizes = ", ".join(f"{arena.device} {arena.scope} {bytes_text(arena.peak)}" for arena in self)
        return embedded(render_svg(self, self.title), f"Memory plan of {self.title}: {sizes or 'no memory'}")
