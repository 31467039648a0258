"""A roofline as one HTML page: the picture, and below it a table of the kernels, the longest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from landbridge.plan_chart.picture import table_page
from landbridge.roofline.limits import MachineLimits
from landbridge.roofline.svg import render_svg
from landbridge.roofline.timed_kernel import TimedKernel
from landbridge.text.markup import markup

_COLUMNS = ("kernel", "us", "MFLOP", "MB", "% peak", "% bandwidth", "% roof", "tasks", "schedule", "weighed")
_NOTE = (
    "% peak, % bandwidth, % roof: what a kernel reached of the most operations and bytes a second of this machine, and "
    "of the nearer of both. weighed: the register tiles, rows x columns, that the compiler took into account, the one "
    "that was taken first, with the cycles that it predicted for one core."
)


def render_html(kernels: Sequence[TimedKernel], limits: MachineLimits, title: str) -> str:
    """Returns the page of ``kernels`` under ``limits`` as the text of an HTML file; it loads nothing and runs
    nothing.
    """
    rows = ("".join(_cells(kernel, limits)) for kernel in _ordered(kernels))
    return table_page(title, render_svg(kernels, limits, title), _COLUMNS, rows, _NOTE)


def _ordered(kernels: Sequence[TimedKernel]) -> list[TimedKernel]:
    return sorted(kernels, key=lambda kernel: -kernel.seconds)


def _cells(kernel: TimedKernel, limits: MachineLimits) -> Iterator[str]:
    level = limits.level_of(kernel.nbytes).name
    yield f"<td>{markup(kernel.name)}</td>"
    for number in (
        f"{1e6 * kernel.seconds:.1f}",
        f"{kernel.flops / 1e6:.3g}",
        f"{kernel.nbytes / 1e6:.3g}",
        f"{100 * kernel.of_peak(limits):.0f}",
        f"{100 * kernel.of_bandwidth(limits):.0f} ({level})",
        f"{100 * kernel.of_roof(limits):.0f}",
        str(kernel.tasks),
    ):
        yield f'<td class="n">{markup(number)}</td>'
    yield f"<td>{markup(kernel.schedule)}</td><td>{markup('; '.join(kernel.weighed))}</td>"
