"""``landbridge run``: runs a model, and prints its latency, the bytes copied and the memory planned."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from landbridge.cli import arguments as args
from landbridge.cli.device_list import DeviceList
from landbridge.cli.memory_report import MemoryWatch, print_memory_report
from landbridge.cli.options import CliOption
from landbridge.cli.output import emit, line, progress, table
from landbridge.cli.placement_report import placement_report, print_placement_report
from landbridge.cli.trace import write_trace

if TYPE_CHECKING:
    from landbridge.executable.executable import Executable
    from landbridge.memory.ledger import Move
    from landbridge.session import Session


def run(
    model: args.Model,
    target: args.TargetText = None,
    device: args.DeviceTexts = "cpu",
    place: args.Places = None,
    spill: args.Spills = None,
    mutable: args.Mutable = None,
    shape: args.Shapes = None,
    dim: args.Dims = None,
    allow_links: args.AllowLinks = False,
    at: args.At = None,
    input_spec: args.InputSpecs = None,
    input: args.Inputs = None,
    output_dir: Annotated[Path | None, CliOption(folder=True, help="Write each output there as NAME.npy.")] = None,
    repeat: Annotated[int, CliOption(minimum=1, help="Timed runs, after one that warms up.")] = 10,
    threads: args.Threads = None,
    seed: args.Seed = 0,
    trace: Annotated[
        Path | None,
        CliOption(
            file=True,
            help="Write the kernels of one run as Chrome trace JSON.",
        ),
    ] = None,
    memory: Annotated[bool, CliOption("--memory", help="Say what memory a run takes, and who holds it.")] = False,
    memory_cfg: args.MemoryTexts = None,
    memory_limit: Annotated[
        int | None,
        CliOption(metavar="BYTES", minimum=1 << 20, help="Memory that a run may take at most; for sizes of strangers."),
    ] = None,
    time_limit: Annotated[
        float | None, CliOption(metavar="SECONDS", help="How long a run may wait for its devices.")
    ] = None,
    check_indices: args.CheckIndices = False,
    optimize: args.Optimize = "full",
    sanitize: args.Sanitize = False,
    on: args.On = None,
    json: args.Json = False,
) -> None:
    """Run MODEL on a device. Input files are read into the device's memory; latency covers runs alone."""
    from landbridge.cli.inputs import make_inputs
    from landbridge.cli.models import at_sizes, describe_memory, open_model, refuse_pieces, to_run
    from landbridge.cli.on_board.board import Board
    from landbridge.cli.on_board.commands import declared_options, run_there
    from landbridge.cli.sanitize import exit_on_findings, sanitize_all
    from landbridge.files.output_file import check_folder, check_outputs
    from landbridge.memory.allocators.memory_cfg import parse_memory_cfg
    from landbridge.memory.ledger import ledger
    from landbridge.session import Session

    if sanitize:
        sanitize_all()
    files, shapes = args.parse_arrays(input), args.parse_shapes(shape)
    sources = [model, *files.values()]
    check_outputs([trace], sources)
    if output_dir is not None:
        check_folder(output_dir)
    devices = DeviceList.parse(device)
    board = None if on is None else Board.reach(on, device, target, model)
    opened = open_model(
        model,
        target if board is None else board.target(target, model),
        shapes,
        devices=devices if board is None else None,
        places=args.parse_places(place),
        check_indices=check_indices,
        spill=args.parse_spills(spill),
        mutable=mutable,
        inputs=args.parse_input_specs(input_spec),
        dims=args.parse_dims(dim),
        allow_links=allow_links,
        optimize=args.parse_optimize(optimize),
    )
    if board is not None:
        options = declared_options(device=device, at=at, repeat=repeat, threads=threads, seed=seed, memory=memory,
                                 memory_cfg=memory_cfg, memory_limit=memory_limit, time_limit=time_limit,
                                 sanitize=sanitize)  # fmt: skip
        answer, code = run_there(board, opened.executable, options, files, output_dir, trace, sources)
        answer |= {"model": str(model), "compile_s": opened.compile_s}
        emit(answer) if json else _print(answer)
        if code:
            raise SystemExit(code)
        return
    if trace is not None:
        refuse_pieces(opened.executable, model, "a trace")
    executable = at_sizes(opened.executable, files, args.parse_at(at))
    devices.say_where_kernels_run(executable)
    input_device = devices.of_inputs(executable)
    cfg = parse_memory_cfg(memory_cfg or ())
    bindings = devices.bindings(executable)
    watch = MemoryWatch(executable, devices.first, bindings, cfg) if memory else None
    session = Session(
        to_run(opened.executable, executable),
        device=devices.first,
        devices=bindings,
        num_threads=threads,
        memory_cfg=watch.memory_cfg if watch else cfg,
        memory_limit=memory_limit,
        time_limit=time_limit,
    )
    tensors = make_inputs(executable, files, input_device, seed)
    for name, tensor in tensors.items():
        session.set_input_zero_copy(name, tensor)
    with progress(f"running {model.name}"):
        session.run()
        milliseconds = [_timed_run(session) for _ in range(repeat)]
    with ledger() as moves:
        session.run()
    outputs = _outputs(executable, session, output_dir, sources)
    if trace is not None:
        write_trace(executable, input_device, tensors, threads, trace, sources)
    result: dict[str, Any] = {
        "model": str(model),
        "device": ",".join(devices.of_program(executable)),
        "outputs": outputs,
        "latency_ms": latency(milliseconds),
        "runs_per_s": 1e3 / statistics.fmean(milliseconds),
        "repeat": repeat,
        "compile_s": opened.compile_s,
        "first_program": executable.replacement is not None and session.executable is executable,
        "copies": [_describe_move(move) for move in moves if not move.is_kernel],
        "reorders": [_describe_move(move) for move in moves if move.is_kernel],
        "memory": describe_memory(executable),
    }
    if len({vdevice.name for vdevice in executable.vdevices}) > 1:
        result["placement"] = placement_report(executable)
    if watch is not None:
        result["memory_use"] = watch.report(session)
    if json:
        emit(result)
    else:
        _print(result)
    if sanitize:
        exit_on_findings()


def latency(milliseconds: Sequence[float]) -> dict[str, float]:
    """Returns the minimum and the 50th, 90th and 99th percentiles of ``milliseconds``, one for each run."""
    import numpy as np

    p50, p90, p99 = (float(p) for p in np.percentile(milliseconds, (50, 90, 99)))
    return {"min": min(milliseconds), "median": statistics.median(milliseconds), "p50": p50, "p90": p90, "p99": p99}


def _timed_run(session: Session) -> float:
    began = time.perf_counter_ns()
    session.run()
    return (time.perf_counter_ns() - began) / 1e6


def _describe_move(move: Move) -> dict[str, object]:
    return {"nbytes": move.nbytes, "cause": move.cause, "tensor": move.tensor}


def _outputs(
    executable: Executable, session: Session, directory: Path | None, sources: Sequence[Path]
) -> list[dict[str, object]]:
    import numpy as np

    from landbridge.cli.models import describe_tensor
    from landbridge.files.output_file import make_folder, open_output

    described = []
    stems: set[str] = set()
    retained: list[str | Path] = [*executable.sources, *sources]
    for number, spec in enumerate(executable.main.outputs):
        entry = describe_tensor(spec)
        if not all(isinstance(extent, int) for extent in spec.shape):
            entry["shape"] = list(session.get_output(number).shape)  # sizes that data decided
        if directory is not None:
            make_folder(directory)
            stem = _file_stem(spec.name)
            if stem in stems:
                stem = f"{stem}.{number}"
            stems.add(stem)
            file = directory / f"{stem}.npy"
            with session.get_output(number).host_view("r") as view, open_output(file, retained) as content:
                np.save(content, view)
            entry["file"] = str(file)
        described.append(entry)
    return described


def _file_stem(name: str) -> str:
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in name).lstrip(".") or "output"


def _print(result: dict[str, Any]) -> None:
    table(
        "outputs",
        ("name", "shape", "dtype", "file"),
        [(o["name"], o["shape"], o["dtype"], o.get("file", "")) for o in result["outputs"]],
    )
    times = [f"{milliseconds:.3f}" for name, milliseconds in result["latency_ms"].items() if name != "p50"]
    table(
        "latency",
        ("min ms", "median ms", "p90 ms", "p99 ms", "runs", "runs/s", "compile s"),
        [(*times, result["repeat"], f"{result['runs_per_s']:,.1f}", f"{result['compile_s']:.2f}")],
    )
    if result.get("first_program"):
        line("run by a first program of numpy functions: the full one was not compiled yet")
    table(
        "memory",
        ("device", "scope", "planned bytes", "lower bound", "proved optimal"),
        [
            (m["device"], m["scope"], m["planned_bytes"], m["lower_bound_bytes"], m["proved_optimal"])
            for m in result["memory"]
        ],
    )
    if "placement" in result:
        print_placement_report(result["placement"])
    print_memory_report(result.get("memory_use", []))
    for title, key in (("copies in one run", "copies"), ("kernels that only move data", "reorders")):
        moves = [(move["nbytes"], move["cause"], move["tensor"]) for move in result[key]]
        table(title, ("bytes", "cause", "tensor"), moves)
    if not result["copies"]:
        line("copies in one run: none")
