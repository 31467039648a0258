"""``landbridge explain``: compares the time of each kernel of a program with the machine's limits."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from landbridge.cli import arguments as args
from landbridge.cli.device_list import DeviceList
from landbridge.cli.options import CliOption, UsageError
from landbridge.cli.output import emit, line, lines, message, progress, table

if TYPE_CHECKING:
    from landbridge.executable.executable import Executable
    from landbridge.executable.parts import KernelFacts
    from landbridge.roofline import MachineLimits, TimedKernel
    from landbridge.sizes.size import Extent
    from landbridge.targets import Target
    from landbridge.vm.trace_events import TraceEvent

_COLUMNS = ("kernel", "us", "share", "MFLOP", "MB", "% peak", "% bandwidth", "% roof", "tasks", "schedule", "weighed")
_WEIGHT_COLUMNS = ("weight", "copy=False", "copy read by", "as")
_WEIGHT_KEYS = ("weight", "binds_in_place", "copy_read_by", "copy")


def explain(
    model: args.Model,
    runs: Annotated[int, CliOption("--runs", minimum=1, help="Warm runs; each kernel's median counts.")] = 20,
    top: Annotated[int, CliOption("--top", minimum=0, help="How many kernels to list, the slowest first.")] = 20,
    svg: Annotated[
        Path | None, CliOption("--svg", metavar="FILE", file=True, help="Draw the roofline as an SVG picture.")
    ] = None,
    html: Annotated[
        Path | None,
        CliOption("--html", metavar="FILE", file=True, help="The roofline and all kernels as one HTML page."),
    ] = None,
    loops: Annotated[bool, CliOption("--loops", help="Print the loops of each listed kernel, too.")] = False,
    target: args.TargetText = None,
    device: args.DeviceText = "cpu",
    shape: args.Shapes = None,
    dim: args.Dims = None,
    allow_links: args.AllowLinks = False,
    at: args.At = None,
    input: args.Inputs = None,
    threads: args.Threads = None,
    seed: args.Seed = 0,
    on: args.On = None,
    json: args.Json = False,
) -> None:
    """Say of each kernel of MODEL its schedule, time, work and bytes, and what share of the machine's limits that is.

    Times are medians of warm runs, kernel by kernel. The limits, the peak of multiply-adds and the bandwidth of each
    cache and of memory, are measured in the same run, on as many threads, by kernels of the same code generator; an
    install without the compiler says times alone.
    """
    import numpy as np

    from landbridge.cli.inputs import make_inputs
    from landbridge.cli.models import at_sizes, open_model, refuse_pieces
    from landbridge.cli.on_board.board import Board
    from landbridge.cli.on_board.commands import declared_options, explained_there
    from landbridge.compiler.api import has_compiler
    from landbridge.executable.bound_sizes import sizes_of_inputs
    from landbridge.executable.kernel_facts import facts_of
    from landbridge.files.output_file import check_outputs
    from landbridge.vm.thread_pool import thread_count
    from landbridge.vm.trace import trace_runs

    files, shapes = args.parse_arrays(input), args.parse_shapes(shape)
    check_outputs([svg, html], [model, *files.values()])
    board = None if on is None else Board.reach(on, device, target, model)
    wanted, devices = (target, DeviceList((device,))) if board is None else (board.target(target, model), None)
    opened = open_model(model, wanted, shapes, devices=devices, dims=args.parse_dims(dim), allow_links=allow_links)
    if board is not None:
        options = declared_options(device=device, at=at, runs=runs, threads=threads, seed=seed)
        host = _host_target(opened.executable)
        timed, limits, count = explained_there(board, opened.executable, host, options, files)
        _report(opened.executable, timed, limits, count, model, on, files, svg, html, top, json, loops=loops)
        return
    refuse_pieces(opened.executable, model, "an explanation of its kernels")
    executable = at_sizes(opened.executable, files, args.parse_at(at))
    facts = facts_of(executable)
    inputs = make_inputs(executable, files, device, seed)
    sizes: dict[str, int] = {}
    if opened.executable.is_open:
        specs = opened.executable.main.inputs
        elements = {s.name: np.asarray(inputs[s.name]).reshape(-1).tolist() for s in specs if s.elements}
        sizes = sizes_of_inputs(specs, {s.name: inputs[s.name].shape for s in specs}, elements)
    count = thread_count(threads)
    with progress(f"timing {model.name}"):
        host = _host_target(executable) if has_compiler() else None
        limits = None
        if host is not None:
            from landbridge.cli.machine_limits import measured_limits

            limits = measured_limits(host, count)
        timed = _timed(trace_runs(executable, device, inputs, count, runs), facts, sizes)
    _report(executable, timed, limits, count, model, on, files, svg, html, top, json, loops=loops)


def _report(
    executable: Executable,
    timed: Sequence[TimedKernel],
    limits: MachineLimits | None,
    threads: int,
    model: Path,
    on: str | None,
    files: Mapping[str, Path],
    svg: Path | None,
    html: Path | None,
    top: int,
    json: bool,
    *,
    loops: bool,
) -> None:
    """Draws and prints what was measured; raises UsageError where there is nothing to draw."""
    from landbridge.compiler.api import has_compiler
    from landbridge.executable.kernel_facts import facts_of

    if limits is None and (svg or html):
        raise UsageError(
            "there is no roof to draw: no kernel of the program runs on this CPU, or this install has no compiler to "
            "measure limits with (pip install 'landbridge[compile]')"
        )
    if limits is not None:
        _draw(timed, limits, model, svg, html, [*executable.sources, model, *files.values()])
    if json:
        aliases = dict(executable.main.aliases)
        weights = [dict(zip(_WEIGHT_KEYS, row, strict=True)) for row in _weights(executable)]
        emit(
            _described(model, timed, limits)
            | {"threads": threads, "on": on, "aliases": aliases, "replaceable_weights": weights}
        )
        return
    if limits is None and not has_compiler():
        message("what the machine can do at most is measured where the compiler is: pip install 'landbridge[compile]'")
    if not facts_of(executable):
        message(f"{model} was compiled without facts of its kernels; compile it again to see schedules and work")
    _print(timed, limits, top, loops=loops)
    table("outputs that may be the memory of an input", ("output", "input"), list(executable.main.aliases))
    table("weights that set_params replaces", _WEIGHT_COLUMNS, list(_weights(executable)))


def _weights(executable: Executable) -> Iterator[tuple[str, str, str, str]]:
    """Yields each replaceable weight: its name, whether set_params(copy=False) binds it, and else who reads a copy, and
    its form.
    """
    from landbridge.vm.parameter_memory import uses_of

    for name, use in uses_of(executable, executable.main).items():
        copy = use.copy
        if copy is None:
            yield name, "yes", "", ""
        else:
            yield name, "no", copy.reader, f"{copy.dtype}{list(copy.shape)}, by {copy.step}"


def _host_target(executable: Executable) -> Target | None:
    """Returns the target of the program whose vector code runs on this CPU; None where it has none."""
    from landbridge.executable.parts import CodeImage
    from landbridge.targets import Target

    for module in executable.modules:
        if isinstance(module.image, CodeImage):
            return Target(module.target)
    return None


def _timed(
    runs: Sequence[Sequence[TraceEvent]], facts: Mapping[str, KernelFacts], sizes: Mapping[str, int]
) -> list[TimedKernel]:
    """Returns each kernel and host step of the runs, which all do the same, with its median time."""
    from landbridge.executable.kernel_facts import facts_of_call
    from landbridge.roofline import TimedKernel

    found = []
    for events in zip(*runs, strict=True):
        event = events[0]
        seconds = statistics.median(each.duration_us for each in events) / 1e6
        known = facts_of_call(facts, event.function, event.name)
        if known is None:
            found.append(TimedKernel(event.name, event.function, event.lane, seconds, tasks=event.tasks))
            continue
        flops, nbytes = _number(known.flops, sizes), _number(known.nbytes, sizes)
        described = known.schedule, known.weighed, known.loops
        found.append(
            TimedKernel(event.name, event.function, event.lane, seconds, flops, nbytes, event.tasks, *described)
        )
    return found


def _number(extent: Extent, sizes: Mapping[str, int]) -> int:
    return extent if isinstance(extent, int) else extent.at(sizes)


def _draw(
    timed: Sequence[TimedKernel],
    limits: MachineLimits,
    model: Path,
    svg: Path | None,
    html: Path | None,
    sources: Sequence[str | Path],
) -> None:
    from landbridge.files.output_file import write_text
    from landbridge.roofline.html import render_html
    from landbridge.roofline.svg import render_svg

    for path, render in ((svg, render_svg), (html, render_html)):
        if path is not None:
            write_text(path, render(timed, limits, model.name), sources)
            message(f"wrote {path}")


def _described(model: Path, timed: Sequence[TimedKernel], limits: MachineLimits | None) -> dict[str, Any]:
    from dataclasses import asdict

    from landbridge.roofline import roof_share

    kernels = []
    for kernel in timed:
        described = asdict(kernel)
        if limits is not None:
            described |= {
                "memory": limits.level_of(kernel.nbytes).name,
                "of_peak": kernel.of_peak(limits),
                "of_bandwidth": kernel.of_bandwidth(limits),
                "of_roof": kernel.of_roof(limits),
            }
        kernels.append(described)
    return {
        "model": str(model),
        "seconds": sum(kernel.seconds for kernel in timed),
        "of_roof": None if limits is None else roof_share(timed, limits),
        "limits": None if limits is None else asdict(limits),
        "kernels": kernels,
    }


def _print(timed: Sequence[TimedKernel], limits: MachineLimits | None, top: int, *, loops: bool) -> None:
    from landbridge.roofline import roof_share

    total = sum(kernel.seconds for kernel in timed)
    title = f"{len(timed)} kernels and host steps, {1e3 * total:.3f} ms"
    if limits is not None:
        levels = ", ".join(f"{level.name} {level.bandwidth / 1e9:.0f}" for level in limits.levels)
        message(
            f"limits of {limits.threads} thread{'s' * (limits.threads > 1)}: {limits.flops / 1e9:.0f} GFLOP/s of f32; "
            f"{levels} GB/s"
        )
        title += f", {100 * roof_share(timed, limits):.0f} % of the roof"
    slowest = sorted(timed, key=lambda kernel: -kernel.seconds)[:top]
    table(title, _COLUMNS, [tuple(_row(kernel, total, limits)) for kernel in slowest])
    for kernel in slowest if loops else ():
        if kernel.loops:
            line()
            lines(f"{kernel.name}\n{kernel.loops}")


def _row(kernel: TimedKernel, total: float, limits: MachineLimits | None) -> Iterator[str]:
    yield kernel.name
    yield f"{1e6 * kernel.seconds:.1f}"
    yield f"{100 * kernel.seconds / max(total, 1e-12):.1f} %"
    yield f"{kernel.flops / 1e6:.3g}"
    yield f"{kernel.nbytes / 1e6:.3g}"
    if limits is None:
        yield from ("", "", "")
    else:
        yield f"{100 * kernel.of_peak(limits):.0f}"
        yield f"{100 * kernel.of_bandwidth(limits):.0f} {limits.level_of(kernel.nbytes).name}"
        yield f"{100 * kernel.of_roof(limits):.0f}"
    yield str(kernel.tasks)
    yield kernel.schedule
    yield "; ".join(kernel.weighed)
