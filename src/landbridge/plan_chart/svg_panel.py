"""One arena in an SVG: blocks over steps, the profile of live bytes below them, and both axes."""

from __future__ import annotations

from collections.abc import Iterator

from landbridge.plan_chart.arena import Arena, ArenaBlock, Kind
from landbridge.plan_chart.names import common_prefix, shortened, without_prefix
from landbridge.plan_chart.palette import size_class
from landbridge.plan_chart.svg_sheet import text
from landbridge.plan_chart.units import byte_ticks, bytes_text
from landbridge.text.markup import markup

PANEL_WIDTH = 1200
_LEFT, _RIGHT = 70, 120
_HEAD, _BLOCKS, _GAP, _PROFILE = 30, 480, 14, 84
#: Room below for names of steps, or for times.
_NAMES, _TIMES = 116, 40
#: Advance of a character, on the wide side, and height of a line of whatever 11px font a viewer takes.
_CHARACTER, _LINE = 6.5, 13.0
_NAME_CHARACTERS = 18
#: A capacity further above the plan than this is stated and not drawn: blocks would be too flat to read.
_CAPACITY_IN_VIEW = 1.5


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


class Panel:
    """Draws one arena from its own origin; ``height`` is that of the panel."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self._named = any(block.kind is not Kind.UNKNOWN for block in arena.blocks)
        self._prefix = common_prefix(step.name for step in arena.steps) if self._named else ""
        self._largest = max((block.nbytes for block in arena.blocks), default=0)
        self._top = arena.peak
        if arena.capacity is not None and arena.capacity <= arena.peak * _CAPACITY_IN_VIEW:
            self._top = max(arena.peak, arena.capacity)
        self._floor = _HEAD + _BLOCKS
        self._base = self._floor + _GAP + _PROFILE
        self.height = self._base + (_NAMES if self._named else _TIMES)

    def draw(self) -> str:
        """Returns the panel's elements."""
        return "\n".join(
            [self._heading(), *self._grid(), *self._peak_band(), *self._blocks(), *self._lines(), *self._profile(),
             *self._step_axis()]
        )  # fmt: skip

    def _x(self, step: float) -> float:
        return _LEFT + step * (PANEL_WIDTH - _LEFT - _RIGHT) / max(len(self.arena.steps), 1)

    def _y(self, offset: float) -> float:
        return self._floor - offset * _BLOCKS / max(self._top, 1)

    def _profile_y(self, nbytes: float) -> float:
        return self._base - nbytes * _PROFILE / max(self._top, 1)

    def _heading(self) -> str:
        arena = self.arena
        proof = "proved optimal" if arena.proved_optimal else "not proved optimal"
        facts = [
            f"{bytes_text(arena.peak)} planned",
            f"lower bound {bytes_text(arena.lower_bound)} ({proof})",
            _counted(len(arena.blocks), "block"),
            _counted(len(arena.steps), "step"),
        ]
        if arena.capacity is not None:
            facts.append(f"capacity {bytes_text(arena.capacity)}")
        location = f"{arena.device} · {arena.scope}: " if arena.device else ""
        return text(0, 14, location + ", ".join(facts), "head")

    def _grid(self) -> Iterator[str]:
        right = PANEL_WIDTH - _RIGHT
        ceiling = self._y(self.arena.peak)
        yield f'<rect class="unused" x="{_LEFT}" y="{ceiling:.1f}" width="{right - _LEFT}" height="{self._floor - ceiling:.1f}"/>'  # noqa: E501
        for tick in byte_ticks(self._top):
            y = self._y(tick)
            yield f'<path class="rule" d="M{_LEFT - 4} {y:.1f}H{right}"/>'
            yield text(_LEFT - 8, y + 4, bytes_text(tick), "quiet end")

    def _peak_band(self) -> Iterator[str]:
        live = self.arena.live_bytes
        most = max(live, default=0)
        for step, nbytes in enumerate(live):
            if nbytes == most and nbytes:
                x, width = self._x(step), self._x(step + 1) - self._x(step)
                yield (
                    f'<rect class="band" x="{x:.1f}" y="{_HEAD - 4}" width="{max(width, 1):.1f}" '
                    f'height="{self._base - _HEAD + 4}"/>'
                )

    def _blocks(self) -> Iterator[str]:
        for block in self.arena.blocks:
            if block.nbytes:
                yield from self._block(block)

    def _block(self, block: ArenaBlock) -> Iterator[str]:
        css = f"k{list(Kind).index(block.kind)}" if self._named else f"s{size_class(block.nbytes, self._largest)}"
        x, y = self._x(block.start), self._y(block.offset + block.nbytes)
        width, height = self._x(block.end) - x, self._y(block.offset) - y
        edge = " edge" if min(width, height) > 3 else ""
        yield (
            f'<rect class="{css}{edge}" x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" '
            f'height="{max(height, 0.5):.1f}"><title>{markup(self._tooltip(block))}</title></rect>'
        )
        for part in sorted({use.offset for use in block.uses if use.writes and use.offset}):
            at = self._y(block.offset + part)
            yield f'<path class="part {css}" d="M{x:.1f} {at:.1f}h{width:.1f}"/>'
        for step in block.rewritten_at():
            yield f'<path class="part {css}" d="M{self._x(step):.1f} {y:.1f}v{height:.1f}"/>'
        yield from self._label(block, css, (x, y, width, height))

    def _label(self, block: ArenaBlock, css: str, box: tuple[float, float, float, float]) -> Iterator[str]:
        """Yields the name along the longer side in which it fits, with the size below when that fits too."""
        x, y, width, height = box
        name = without_prefix(block.id, self._prefix)
        across, along = int((width - 6) / _CHARACTER), int((height - 6) / _CHARACTER)
        if height >= _LINE and across >= min(len(name), 4) and (across >= len(name) or across >= along):
            yield text(x + 4, y + 11, shortened(name, across), f"on-{css}")
            size = bytes_text(block.nbytes)
            if height >= 2 * _LINE and across >= len(size):
                yield text(x + 4, y + 11 + _LINE, size, f"on-{css}")
        elif width >= _LINE and along >= min(len(name), 4):
            yield text(x + width / 2 + 4, y + height - 4, shortened(name, along), f"on-{css}", -90)

    def _tooltip(self, block: ArenaBlock) -> str:
        steps = self.arena.steps
        lines = [
            f"{block.id}: {block.nbytes:,} bytes at {block.offset:,}",
            f"from {steps[block.start].name} to {steps[block.end - 1].name}",
        ]
        return "\n".join([*lines, block.subject] if block.subject else lines)

    def _lines(self) -> Iterator[str]:
        arena, right = self.arena, PANEL_WIDTH - _RIGHT
        labels = [(arena.peak, "top", f"planned {bytes_text(arena.peak)}", "strong")]
        if arena.lower_bound != arena.peak:
            labels.append((arena.lower_bound, "bound", f"bound {bytes_text(arena.lower_bound)}", "bound"))
        if arena.capacity is not None and arena.capacity <= self._top:
            labels.append((arena.capacity, "capacity", f"capacity {bytes_text(arena.capacity)}", "capacity"))
        last = float("-inf")
        for nbytes, line, label, css in sorted(labels, reverse=True):
            y = self._y(nbytes)
            yield f'<path class="line {line}" d="M{_LEFT} {y:.1f}H{right}"/>'
            last = max(y + 4, last + _LINE)  # labels of neighbouring lines are stacked
            yield text(right + 6, last, label, css)

    def _profile(self) -> Iterator[str]:
        arena, right = self.arena, PANEL_WIDTH - _RIGHT
        path = [f"M{_LEFT} {self._base}"]
        for step, nbytes in enumerate(arena.live_bytes):
            path.append(f"V{self._profile_y(nbytes):.1f}H{self._x(step + 1):.1f}")
        yield f'<path class="live" d="{"".join(path)}V{self._base}Z"/>'
        bound = self._profile_y(arena.lower_bound)
        yield f'<path class="line bound" d="M{_LEFT} {bound:.1f}H{right}"/>'
        yield text(right + 6, bound + 4, "lower bound" if arena.lower_bound == arena.peak else "bound", "bound")
        yield text(right + 6, self._base - 4, "live bytes", "quiet")
        yield f'<path class="rule" d="M{_LEFT} {self._base}H{right}"/>'

    def _step_axis(self) -> Iterator[str]:
        """Yields names or times of as many steps as fit, that of the peak among them."""
        steps, peak = self.arena.steps, self.arena.peak_step
        if not steps:
            return
        width = 13 if self._named else 80
        every = max(1, -(-width * len(steps) // (PANEL_WIDTH - _LEFT - _RIGHT)))
        for number, step in enumerate(steps):
            if number != peak and (number % every or abs(number - peak) < every):
                continue
            css = "peak strong" if number == peak else "quiet"
            if self._named:
                name = shortened(without_prefix(step.name, self._prefix), _NAME_CHARACTERS)
                yield text(self._x(number + 0.5) + 3, self._base + 10, name, f"{css} end", -55)
            else:
                yield text(self._x(number), self._base + 16, step.name, f"{css} mid")
        if not self._named:
            yield text((PANEL_WIDTH - _RIGHT + _LEFT) / 2, self._base + 34, "time", "quiet mid")
