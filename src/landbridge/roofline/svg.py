"""A roofline as one standalone SVG: operations a second by operations a byte, both in powers of ten.

A dot is a kernel, its area the time it takes; the roof is the peak, and a slope for each level of memory. Kernels that
compute nothing stand in a strip, by the share of their memory's bandwidth.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from landbridge.plan_chart.arena import Kind
from landbridge.plan_chart.palette import KINDS, SURFACES
from landbridge.plan_chart.svg_sheet import MARGIN, legend, light_and_dark, sheet, text
from landbridge.plan_chart.text_width import shortened
from landbridge.roofline.limits import MachineLimits
from landbridge.roofline.scales import BOTTOM, HEIGHT, RIGHT, STRIP, TOP, WIDTH, is_in_strip, scales_of
from landbridge.roofline.timed_kernel import TimedKernel, roof_share
from landbridge.text.markup import markup

#: Names stand beside the kernels that take longest.
_NAMED = 8
_LARGEST = 26.0
#: What a name takes at most.
_NAME_WIDTH = 280.0
#: How high a name is, and from which distance to its dot a line leads there.
_LINE, _SHIFTED = 13, 5


def render_svg(kernels: Sequence[TimedKernel], limits: MachineLimits, title: str) -> str:
    """Returns the picture of ``kernels`` under ``limits`` as the text of an SVG file that refers to nothing outside of
    it.
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
        self._scales = scales_of(kernels, limits)
        self._longest = max((k.seconds for k in kernels), default=1.0) or 1.0

    def draw(self) -> Iterator[str]:
        yield from self._axes()
        yield from self._strip()
        yield from self._roofs()
        names = [*self._names()]
        yield from (line for _, line in names)
        for kernel in self._kernels:
            yield self._dot(kernel)
        yield from (name for name, _ in names)

    def _names(self) -> Iterator[tuple[str, str]]:
        """Yields names of the longest kernels, and the lines to their dots where they are not next to them."""
        taken: list[tuple[float, float]] = []
        for kernel in self._kernels[:_NAMED]:
            x, y = self._at(kernel)
            label_x = x + 8 + self._radius(kernel)
            is_left = label_x + _NAME_WIDTH > RIGHT
            label_x = x - 8 - self._radius(kernel) if is_left else label_x
            step = -_LINE if y > BOTTOM - _LINE * _NAMED else _LINE  # a name must not run below the axis
            location = y
            while any(abs(location - other) < _LINE and abs(x - across) < 2 * _NAME_WIDTH for across, other in taken):
                location += step
            taken.append((x, location))
            end = label_x + 3 if is_left else label_x - 3
            line = f'<line class="leader" x1="{x:.1f}" y1="{y:.1f}" x2="{end:.1f}" y2="{location:.1f}"/>'
            yield (
                text(label_x, location + 4, shortened(kernel.name, _NAME_WIDTH), "name end" if is_left else "name"),
                line if abs(location - y) > _SHIFTED else "",
            )

    def _at(self, kernel: TimedKernel) -> tuple[float, float]:
        if is_in_strip(kernel):
            left, right = STRIP
            return (left + right) / 2, _of_strip(kernel.of_bandwidth(self._limits))
        return self._scales.x(kernel.intensity), self._scales.y(kernel.flops_rate)

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
        scales = self._scales
        for power in range(scales.low, scales.high + 1):
            x = scales.x(10.0**power)
            yield f'<line class="grid" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{BOTTOM}"/>'
            yield text(x, BOTTOM + 18, f"{10.0**power:g}", "quiet mid")
        for power in range(math.ceil(scales.bottom), math.floor(scales.top) + 1):
            y = scales.y(10.0**power)
            yield f'<line class="grid" x1="{scales.left}" y1="{y:.1f}" x2="{RIGHT}" y2="{y:.1f}"/>'
            yield text(scales.left - 8, y + 4, f"{10.0 ** (power - 9):g}", "quiet end")
        yield text((scales.left + RIGHT) / 2, HEIGHT - 18, "operations for each byte", "quiet mid")
        yield text(scales.left - 8, TOP - 4, "GFLOP/s", "quiet end")

    def _strip(self) -> Iterator[str]:
        """Yields the axis of kernels that compute nothing."""
        if not any(map(is_in_strip, self._kernels)):
            return
        left, right = STRIP
        for share in (0, 50, 100):
            y = _of_strip(share / 100)
            yield f'<line class="grid" x1="{left}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>'
            yield text(left - 8, y + 4, f"{share} %", "quiet end")
        yield text((left + right) / 2, HEIGHT - 18, "no arithmetic", "quiet mid")
        yield text(MARGIN, TOP - 4, "of the bandwidth", "quiet")

    def _roofs(self) -> Iterator[str]:
        scales, peak = self._scales, self._limits.flops
        fastest = max(level.bandwidth for level in self._limits.levels)
        y = scales.y(peak)
        yield f'<line class="roof" x1="{scales.x(peak / fastest):.1f}" y1="{y:.1f}" x2="{RIGHT}" y2="{y:.1f}"/>'
        yield text(RIGHT + 6, y + 4, f"{peak / 1e9:.0f} GFLOP/s", "ink")
        for level in self._limits.levels:
            first = max(10.0**scales.low, 10.0**scales.bottom / level.bandwidth)
            x, top = scales.x(first), scales.y(first * level.bandwidth)
            ridge = scales.x(peak / level.bandwidth)
            yield f'<line class="roof" x1="{x:.1f}" y1="{top:.1f}" x2="{ridge:.1f}" y2="{y:.1f}"/>'
            label = text(x + 8, top - 6, f"{level.name} {level.bandwidth / 1e9:.0f} GB/s", "quiet")
            yield f'<g transform="rotate({scales.slope:.2f} {x:.1f} {top:.1f})">{label}</g>'


def _of_strip(share: float) -> float:
    """Returns the coordinate of a share of the bandwidth; a share above 1 is at the top."""
    return BOTTOM - min(share, 1.0) * (BOTTOM - TOP)


def _rules(mode: str) -> str:
    surface = SURFACES[mode]
    fills = {"compute": KINDS[Kind.CONTRACTION], "memory": KINDS[Kind.ELEMENTWISE]}
    rules = [
        f".roof{{stroke:{surface['bound']}}}circle{{stroke:{surface['ink']}}}.leader{{stroke:{surface['ink']}}}",
        *(f".{css}{{fill:{(s.dark if mode == 'dark' else s.light)[0]}}}" for css, s in fills.items()),
    ]
    return "".join(rules)


_STYLE = light_and_dark(".roof{stroke-width:2}.leader{stroke-opacity:.6}circle{fill-opacity:.8}", _rules)
