"""``landbridge plan``: plans a list of buffers, or shows the plan of a model, as a table or as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from landbridge.cli import arguments as args
from landbridge.cli.device_list import DeviceList
from landbridge.cli.models import at_sizes, open_model, refuse_pieces
from landbridge.cli.options import CliArgument, CliOption, UsageError
from landbridge.cli.output import emit, line, message, progress

if TYPE_CHECKING:
    from landbridge.executable.executable import Executable
    from landbridge.plan_chart import Arena

_MODELS = (".onnx", ".lbx")

#: Seconds of search where nobody says; it ends earlier when no plan can be better.
_BUDGET = 30.0


def plan(
    file: Annotated[
        Path,
        CliArgument(
            metavar="FILE",
            exists=True,
            file=True,
            help="An .onnx or .lbx file, or a .csv with columns id,lower,upper,size[,alignment].",
        ),
    ],
    capacity: Annotated[
        list[str] | None,
        CliOption(
            "--capacity", metavar="N|SCOPE=N", help="Bytes there are; SCOPE=N for one scope of a model. It must fit."
        ),
    ] = None,
    budget: Annotated[
        float | None,
        CliOption(
            "--budget",
            metavar="SECONDS",
            minimum=0,
            help="Search that long for a lower peak; if absent 30, and a model keeps its own plan.",
        ),
    ] = None,
    svg: Annotated[
        Path | None, CliOption("--svg", metavar="FILE", file=True, help="Draw the plan as an SVG picture.")
    ] = None,
    html: Annotated[
        Path | None,
        CliOption("--html", metavar="FILE", file=True, help="Draw the plan as one HTML page to explore."),
    ] = None,
    target: args.TargetText = None,
    device: args.DeviceTexts = "cpu",
    place: args.Places = None,
    shape: args.Shapes = None,
    dim: args.Dims = None,
    allow_links: args.AllowLinks = False,
    at: args.At = None,
    json: args.Json = False,
) -> None:
    """Plan the buffers of a CSV file, or show what was planned for a model; draw it with --svg and --html.

    A model keeps the plan that it was compiled with, unless --budget asks for another search or --capacity is
    below what it needs.
    """
    from landbridge.files.output_file import check_outputs

    limits = _limits(capacity)
    sources: list[str | Path] = [file]
    check_outputs([svg, html], sources)
    if file.suffix == ".csv":
        if target is not None or shape or dim or at or place or allow_links:
            raise UsageError(
                "a CSV file has buffers, and no --target, --shape, --dim, --allow-links, --at or --place",
                parameter="FILE",
            )
        shown = _of_csv(file, limits, budget)
    elif file.suffix in _MODELS:
        opened = open_model(
            file,
            target,
            args.parse_shapes(shape),
            devices=DeviceList.parse(device),
            places=args.parse_places(place),
            dims=args.parse_dims(dim),
            allow_links=allow_links,
        )
        refuse_pieces(opened.executable, file, "a memory plan")
        executable = at_sizes(opened.executable, {}, args.parse_at(at))
        shown = _of_model(file, executable, limits, budget)
        sources += executable.sources
    else:
        raise UsageError(
            f"{str(file)!r} ends in {file.suffix or 'nothing'!r}; legal: .csv, .onnx, .lbx", parameter="FILE"
        )
    _draw(shown, svg, html, sources)
    if json:
        emit(shown.to_json())
        return
    from landbridge.cli.placement_report import print_crossings
    from landbridge.cli.plan_text import print_plan

    print_plan(shown.arenas, shown.seconds)
    for output, input in shown.aliases.items():
        line(f"Output {output} may be the memory of input {input}, and is updated in place then.")
    if shown.crossings:
        print_crossings(shown.crossings)


@dataclass(frozen=True)
class _Shown:
    """The plans of a file, the seconds that planning took, the crossings of a model, and its outputs that may be the
    memory of an input.
    """

    file: Path
    arenas: Sequence[Arena]
    seconds: float
    crossings: list[dict[str, object]] = field(default_factory=list)
    aliases: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Returns the plan in JSON form: sums over the scopes, offsets by block; then each scope."""
        scopes = [_scope(arena) for arena in self.arenas]
        return {
            "file": str(self.file),
            "peak": sum(arena.peak for arena in self.arenas),
            "lower_bound": sum(arena.lower_bound for arena in self.arenas),
            "proved_optimal": all(arena.proved_optimal for arena in self.arenas),
            "seconds": self.seconds,
            "offsets": {name: offset for scope in scopes for name, offset in scope["offsets"].items()},
            "scopes": scopes,
            "crossings": self.crossings,
            "aliases": dict(self.aliases),
        }


def _scope(arena: Arena) -> dict[str, Any]:
    step = arena.peak_step
    return {
        "device": arena.device,
        "scope": arena.scope,
        "capacity": arena.capacity,
        "peak": arena.peak,
        "lower_bound": arena.lower_bound,
        "proved_optimal": arena.proved_optimal,
        "peak_step": arena.steps[step].name if arena.steps else None,
        "holders": [block.id for block in arena.holders(step)],
        "offsets": {block.id: block.offset for block in arena.blocks},
        "sizes": {block.id: block.nbytes for block in arena.blocks},
        "lifetimes": {block.id: [block.start, block.end] for block in arena.blocks},
    }


def _limits(texts: Sequence[str] | None) -> dict[str, int]:
    """Parses ``["8", "global.vtcm=4"]`` to ``{"": 8, "global.vtcm": 4}``; raises UsageError."""
    limits: dict[str, int] = {}
    for text in texts or ():
        scope, _, number = text.rpartition("=")
        if not number.isdecimal() or scope in limits:
            raise UsageError(
                f"{text!r} is not a number of bytes or SCOPE=BYTES, one for each scope", parameter="--capacity"
            )
        limits[scope] = int(number)
    return limits


def _of_csv(file: Path, limits: Mapping[str, int], budget: float | None) -> _Shown:
    from landbridge import planner
    from landbridge.plan_chart import arena_of_buffers
    from landbridge.planner.csv_reader import read_csv

    if set(limits) - {""}:
        raise UsageError("a CSV file has one scope, without a name: --capacity N", parameter="--capacity")
    buffers, capacity = read_csv(file), limits.get("")
    with progress(f"planning {len(buffers)} buffers"):
        found = planner.plan(buffers, capacity, _seconds(budget))
    return _Shown(file, [arena_of_buffers(buffers, found, capacity)], found.seconds)


def _of_model(file: Path, executable: Executable, limits: Mapping[str, int], budget: float | None) -> _Shown:
    from landbridge.cli.placement_report import crossings_report
    from landbridge.plan_chart import arenas_of_executable, replanned

    planned = arenas_of_executable(executable)
    _check_scopes(limits, planned)
    seconds = float(executable.metadata.get("seconds.plan", 0))
    arenas = []
    for arena in planned:
        limit = limits.get(arena.scope, limits.get(""))
        capacity = arena.capacity if limit is None else limit
        if budget is not None or (limit is not None and arena.peak > limit):
            with progress(f"planning {len(arena.blocks)} blocks of {arena.scope}"):
                arena, spent = replanned(arena, capacity, _seconds(budget))
            seconds += spent
        arenas.append(arena.with_capacity(capacity))
    return _Shown(file, arenas, seconds, crossings_report(executable), dict(executable.main.aliases))


def _check_scopes(limits: Mapping[str, int], arenas: Sequence[Arena]) -> None:
    scopes = [arena.scope for arena in arenas]
    unknown = set(limits) - {"", *scopes}
    if unknown:
        raise UsageError(
            f"nothing is planned in {', '.join(sorted(unknown))}; planned are: {', '.join(scopes) or 'no scopes'}",
            parameter="--capacity",
        )


def _seconds(budget: float | None) -> float:
    return _BUDGET if budget is None else budget


def _draw(shown: _Shown, svg: Path | None, html: Path | None, sources: Sequence[str | Path]) -> None:
    if svg is None and html is None:
        return
    from landbridge.errors import PlanError
    from landbridge.files.output_file import write_text
    from landbridge.plan_chart.html import render_html
    from landbridge.plan_chart.svg import render_svg

    if not any(arena.blocks for arena in shown.arenas):
        raise PlanError(f"{shown.file}: nothing is planned, so there is nothing to draw; leave out --svg and --html")
    for path, render in ((svg, render_svg), (html, render_html)):
        if path is not None:
            write_text(path, render(shown.arenas, shown.file.name), sources)
            message(f"wrote {path}")
