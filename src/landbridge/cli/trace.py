"""``landbridge trace``: records the time of each kernel in one run, and the memory in use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from landbridge.cli import arguments as args
from landbridge.cli.device_list import DeviceList
from landbridge.cli.options import CliOption
from landbridge.cli.output import emit, message, progress, table

if TYPE_CHECKING:
    from landbridge.executable.executable import Executable
    from landbridge.tensor import Tensor
    from landbridge.vm.trace_events import Trace


def trace(
    model: args.Model,
    output: Annotated[
        Path | None,
        CliOption("--output", "-o", file=True, help="The trace; MODEL with .trace.json if absent."),
    ] = None,
    svg: Annotated[
        Path | None, CliOption("--svg", metavar="FILE", file=True, help="Draw the timeline as an SVG picture.")
    ] = None,
    html: Annotated[
        Path | None,
        CliOption("--html", metavar="FILE", file=True, help="The timeline and all steps as one HTML page."),
    ] = None,
    top: Annotated[int, CliOption("--top", minimum=0, help="How many kernels to list, the slowest first.")] = 10,
    target: args.TargetText = None,
    device: args.DeviceText = "cpu",
    shape: args.Shapes = None,
    dim: args.Dims = None,
    allow_links: args.AllowLinks = False,
    at: args.At = None,
    input: args.Inputs = None,
    threads: args.Threads = None,
    seed: args.Seed = 0,
    json: args.Json = False,
) -> None:
    """Run MODEL once, kernel by kernel, and write a Chrome trace; list the kernels that take longest.

    The CPU and each device have a lane of their own. Each kernel is a call of its own here, which costs some
    microseconds between them: `landbridge run` and
    `landbridge bench` time a run as it is.
    """
    from landbridge.cli.inputs import make_inputs
    from landbridge.cli.models import at_sizes, open_model, refuse_pieces
    from landbridge.files.output_file import check_outputs

    files, shapes = args.parse_arrays(input), args.parse_shapes(shape)
    file, sources = output or model.with_suffix(".trace.json"), [model, *files.values()]
    check_outputs([file, svg, html], sources)
    dims, devices = args.parse_dims(dim), DeviceList((device,))
    opened = open_model(model, target, shapes, devices=devices, dims=dims, allow_links=allow_links)
    refuse_pieces(opened.executable, model, "a trace")
    executable = at_sizes(opened.executable, files, args.parse_at(at))
    inputs = make_inputs(executable, files, device, seed)
    with progress(f"tracing {model.name}"):
        events = write_trace(executable, device, inputs, threads, file, sources)
    _draw(events, model, svg, html, [*executable.sources, *sources])
    busy_us = sum(event.duration_us for event in events)
    if json:
        described = [
            {"name": e.name, "category": e.category, "start_us": e.start_us, "duration_us": e.duration_us,
             "tasks": e.tasks, "lane": e.lane}
            for e in events
        ]  # fmt: skip
        emit({"model": str(model), "file": str(file), "busy_us": busy_us, "events": described})
        return
    slowest = sorted(events, key=lambda event: -event.duration_us)[:top]
    table(
        f"{len(events)} kernels and host steps, {busy_us / 1e3:.3f} ms",
        ("step", "kind", "lane", "us", "share", "tasks"),
        [
            (
                e.name,
                e.category,
                e.lane,
                f"{e.duration_us:.1f}",
                f"{100 * e.duration_us / max(busy_us, 1e-9):.1f} %",
                e.tasks,
            )
            for e in slowest
        ],
    )


def _draw(events: Trace, model: Path, svg: Path | None, html: Path | None, sources: Sequence[str | Path]) -> None:
    from landbridge.files.output_file import write_text
    from landbridge.timeline.html import render_html
    from landbridge.timeline.svg import render_svg

    spans = events.spans()
    for path, render in ((svg, render_svg), (html, render_html)):
        if path is not None:
            write_text(path, render(spans, model.name), sources)
            message(f"wrote {path}")


def write_trace(
    executable: Executable,
    device: str,
    inputs: Mapping[str, Tensor],
    threads: int | None,
    file: Path,
    sources: Sequence[Path],
) -> Trace:
    """Traces one run on ``inputs``, by reference, into ``file``, which is none of ``sources``; returns the trace."""
    from landbridge.files.output_file import write_text
    from landbridge.vm.trace import trace_run
    from landbridge.vm.trace_events import chrome_trace

    events = trace_run(executable, device, inputs, threads)
    text = chrome_trace(events, process=executable.metadata.get("model", "model"))
    write_text(file, text, [*executable.sources, *sources])
    message(f"wrote {file}; open it in chrome://tracing or ui.perfetto.dev")
    return events
