"""A roofline as one standalone SVG: operations a second by operations a byte, both in powers of ten.

A dot is a kernel, its area the time it takes; the roof is the peak, and a slope for each level of memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from landbridge.plan_chart.arena import Kind
from landbridge.plan_chart.markup import markup
from landbridge.plan_chart.palette import KINDS, SURFACES
from landbridge.plan_chart.svg_sheet import MARGIN, legend, light_and_dark, sheet, text
from landbridge.plan_chart.text_width import shortened
from landbridge.roofline.limits import MachineLimits
from landbridge.roofline.timed_kernel import TimedKernel, roof_share

WIDTH, HEIGHT = 1240, 720
_LEFT, _RIGHT, _TOP, _BOTTOM = 90, 110, 76, 60
#: Powers of ten of operations a byte, and below the peak, that are drawn.
_INTENSITIES = (-2, 4)
_DECADES = 4
#: Names stand beside the kernels that take longest.
_NAMED = 8
_LARGEST = 26.0
#: What a name takes at most.
_NAME_ROOM = 280.0

#: Of a roof, in degrees: a decade of operations a second for each of operations a byte.
_SLOPE = -math.degrees(
    math.atan2((HEIGHT - _TOP - _BOTTOM) / _DECADES, (WIDTH - _LEFT - _RIGHT) / (_INTENSITIES[1] - _INTENSITIES[0]))
)


def render_svg(kernels: Sequence[TimedKernel], limits: MachineLimits, title: str) -> str:
    """The picture of ``kernels`` under ``limits`` as the text of an SVG file, which refers to nothing outside itself.

    Kernels that compute nothing stand at the left edge, by their bytes alone.
    """
    chart = _Chart(kernels, limits)
    share = f"{100 * roof_share(kernels, limits):.0f} % of the roof"
    spent = f"{len(kernels)} kernels, {1e3 * sum(k.seconds for k in kernels):.3f} ms, {share}"
    threads = f"{limits.threads} thread{'s' * (limits.threads > 1)}"
    body = [*legend((("bound by arithmetic", "compute"), ("bound by memory", "memory")), WIDTH - MARGIN), *chart.draw()]
    return sheet((WIDTH, HEIGHT), f"Roofline of {title}: {spent}", title, _STYLE, body, f"{spent}, {threads}")


class _Chart:
    def __init__(self, kernels: Sequence[TimedKernel], limits: MachineLimits) -> None:
        self._kernels = sorted(kernels, key=lambda k: -k.seconds)
        self._limits = limits
        self._top = math.ceil(math.log10(limits.flops) * 4) / 4 + 0.1
        self._longest = max((k.seconds for k in kernels), default=1.0) or 1.0

    def draw(self) -> Iterator[str]:
        yield from self._axes()
        yield from self._roofs()
        for kernel in self._kernels:
            yield self._dot(kernel)
        taken: list[tuple[float, float]] = []
        for kernel in self._kernels[:_NAMED]:
            x, y = self._at(kernel)
            beside = x + 8 + self._radius(kernel)
            is_left = beside + _NAME_ROOM > WIDTH - _RIGHT
            beside = x - 8 - self._radius(kernel) if is_left else beside
            step = -13 if y > HEIGHT - _BOTTOM - 13 * _NAMED else 13  # no name runs below the axis
            while any(abs(y - other) < 13 and abs(x - across) < 2 * _NAME_ROOM for across, other in taken):
                y += step
            taken.append((x, y))
            yield text(beside, y + 4, shortened(kernel.name, _NAME_ROOM), "name end" if is_left else "name")

    def _x(self, intensity: float) -> float:
        low, high = _INTENSITIES
        at = min(max(math.log10(max(intensity, 1e-9)), low), high)
        return _LEFT + (at - low) / (high - low) * (WIDTH - _LEFT - _RIGHT)

    def _y(self, rate: float) -> float:
        at = min(max(math.log10(max(rate, 1e-9)), self._top - _DECADES), self._top)
        return _TOP + (self._top - at) / _DECADES * (HEIGHT - _TOP - _BOTTOM)

    def _at(self, kernel: TimedKernel) -> tuple[float, float]:
        lowest = 10.0 ** _INTENSITIES[0]
        if not kernel.flops:  # what it would do at one operation for each hundred bytes
            return self._x(lowest), self._y(kernel.bandwidth * lowest)
        return self._x(kernel.intensity), self._y(kernel.flops_rate)

    def _radius(self, kernel: TimedKernel) -> float:
        return max(2.0, _LARGEST * math.sqrt(kernel.seconds / self._longest))

    def _dot(self, kernel: TimedKernel) -> str:
        x, y = self._at(kernel)
        limits = self._limits
        facts = [
            kernel.name,
            f"{1e6 * kernel.seconds:.1f} us",
            f"{kernel.flops / 1e6:.3g} MFLOP, {kernel.nbytes / 1e6:.3g} MB",
            f"{100 * kernel.of_peak(limits):.0f} % of peak, {100 * kernel.of_bandwidth(limits):.0f} % of bandwidth "
            f"({limits.level_of(kernel.nbytes).name}), {100 * kernel.of_roof(limits):.0f} % of the roof",
            kernel.schedule,
        ]
        bound = limits.seconds(kernel.flops, 0) >= limits.seconds(0, kernel.nbytes)
        return (
            f'<circle class="{"compute" if bound else "memory"}" cx="{x:.1f}" cy="{y:.1f}" '
            f'r="{self._radius(kernel):.1f}"><title>{markup(chr(10).join(filter(None, facts)))}</title></circle>'
        )

    def _axes(self) -> Iterator[str]:
        low, high = _INTENSITIES
        bottom, right = HEIGHT - _BOTTOM, WIDTH - _RIGHT
        for power in range(low, high + 1):
            x = self._x(10.0**power)
            yield f'<line class="grid" x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{bottom}"/>'
            yield text(x, bottom + 18, f"{10.0**power:g}", "quiet mid")
        for power in range(math.ceil(self._top - _DECADES), math.floor(self._top) + 1):
            y = self._y(10.0**power)
            yield f'<line class="grid" x1="{_LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>'
            yield text(_LEFT - 8, y + 4, f"{10.0 ** (power - 9):g}", "quiet end")
        yield text((_LEFT + right) / 2, HEIGHT - 18, "operations for each byte", "quiet mid")
        yield text(MARGIN, _TOP - 4, "GFLOP/s", "quiet")

    def _roofs(self) -> Iterator[str]:
        peak, right = self._limits.flops, WIDTH - _RIGHT
        nearest = max(level.bandwidth for level in self._limits.levels)
        y = self._y(peak)
        yield f'<line class="roof" x1="{self._x(peak / nearest):.1f}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>'
        yield text(right + 6, y + 4, f"{peak / 1e9:.0f} GFLOP/s", "ink")
        floor = 10.0 ** (self._top - _DECADES)
        for level in self._limits.levels:
            first = max(10.0 ** _INTENSITIES[0], floor / level.bandwidth)
            x, top = self._x(first), self._y(first * level.bandwidth)
            ridge = self._x(peak / level.bandwidth)
            yield f'<line class="roof" x1="{x:.1f}" y1="{top:.1f}" x2="{ridge:.1f}" y2="{y:.1f}"/>'
            label = text(x + 8, top - 6, f"{level.name} {level.bandwidth / 1e9:.0f} GB/s", "quiet")
            yield f'<g transform="rotate({_SLOPE:.2f} {x:.1f} {top:.1f})">{label}</g>'


def _rules(mode: str) -> str:
    surface = SURFACES[mode]
    fills = {"compute": KINDS[Kind.CONTRACTION], "memory": KINDS[Kind.ELEMENTWISE]}
    rules = [
        f".roof{{stroke:{surface['bound']}}}circle{{stroke:{surface['ink']}}}",
        *(f".{css}{{fill:{(s.dark if mode == 'dark' else s.light)[0]}}}" for css, s in fills.items()),
    ]
    return "".join(rules)


_STYLE = light_and_dark(".roof{stroke-width:2}circle{fill-opacity:.8}", _rules)
