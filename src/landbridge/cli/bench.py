"""``landbridge bench``: measures the time of a run, alternating with other runtimes."""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from landbridge.cli import arguments as args
from landbridge.cli.device_list import DeviceList
from landbridge.cli.options import CliOption
from landbridge.cli.output import emit, message, progress, table

if TYPE_CHECKING:
    from landbridge.tensor import Tensor

OURS = "landbridge"

_PERCENTILES = ("min_ms", "p90_ms", "p99_ms")

#: A difference of outputs, as a share of the largest value, that a message reports.
_NOTABLE = 1e-3

#: A round calls as often as fits into this many nanoseconds: the clock and its call are then no part of the figure.
_ROUND_NS = 1_000_000


def bench(
    model: args.Model,
    rounds: Annotated[int, CliOption("--rounds", minimum=1, help="Rounds; each times each of them once.")] = 30,
    against: Annotated[
        str, CliOption("--against", metavar="NAME,NAME", help="Runtimes to measure against: onnxruntime, openvino.")
    ] = "onnxruntime",
    pause: Annotated[
        int,
        CliOption(
            "--pause",
            metavar="MS",
            minimum=0,
            maximum=10_000,
            help="Milliseconds of rest before each call.",
        ),
    ] = 0,
    target: args.TargetText = None,
    device: args.DeviceTexts = "cpu",
    place: args.Places = None,
    shape: args.Shapes = None,
    dim: args.Dims = None,
    allow_links: args.AllowLinks = False,
    at: args.At = None,
    input: args.Inputs = None,
    threads: Annotated[
        int | None, CliOption("--threads", minimum=1, help="Threads to run on; one and all cores if absent.")
    ] = None,
    seed: args.Seed = 0,
    alone: Annotated[bool, CliOption("--alone", help="Without others; an .lbx is always timed alone.")] = False,
    on: args.On = None,
    json: args.Json = False,
) -> None:
    """Time runs of MODEL, inputs bound beforehand, alternating with other runtimes on the same inputs.

    Those must be installed: `pip install onnxruntime openvino`. Machines differ and are busy with other things: the
    ratio of the medians of one call says more than milliseconds. Outputs are compared, and the largest difference is
    shown, as a share of the largest value. Threads of some runtimes spin when their work is done: `--pause 20` lets
    them end before the next one runs. On a board (`--on`) landbridge is timed alone.
    """
    from landbridge.cli.inputs import make_inputs
    from landbridge.cli.models import at_sizes, open_model, to_run
    from landbridge.cli.on_board.board import Board
    from landbridge.cli.on_board.commands import declared_options
    from landbridge.cli.peers import largest_difference, peers_named
    from landbridge.process.usable_cores import usable_cores
    from landbridge.session import Session

    files, shapes = args.parse_arrays(input), args.parse_shapes(shape)
    peers = {} if alone or on or model.suffix == ".lbx" else peers_named([each.strip() for each in against.split(",")])
    devices = DeviceList.parse(device)
    board = None if on is None else Board.reach(on, device, target, model)
    opened = open_model(
        model,
        target if board is None else board.target(target, model),
        shapes,
        devices=devices if board is None else None,
        places=args.parse_places(place),
        dims=args.parse_dims(dim),
        allow_links=allow_links,
    )
    if board is not None:
        options = declared_options(device=device, at=at, rounds=rounds, pause=pause, threads=threads, seed=seed)
        answer = board.command("bench", opened.executable, options, files).result
        answer |= {"model": str(model), "compile_s": opened.compile_s, "on": on}
        emit(answer) if json else _print(answer["results"], rounds)
        return
    executable = at_sizes(opened.executable, files, args.parse_at(at))
    inputs = make_inputs(executable, files, devices.of_inputs(executable), seed)
    copies = {} if not peers else {name: _host_copy(tensor) for name, tensor in inputs.items()}
    load = os.getloadavg()[0]
    results, differing = [], set()
    for count in [threads] if threads else sorted({1, usable_cores()}):
        session = Session(
            to_run(opened.executable, executable),
            device=devices.first,
            devices=devices.bindings(executable),
            num_threads=count,
        )
        for name, tensor in inputs.items():
            session.set_input_zero_copy(name, tensor)
        created = {name: peer(model, copies, count) for name, peer in peers.items()}
        actions: dict[str, Callable[[], object]] = {OURS: session.run, **{name: p.run for name, p in created.items()}}
        with progress(f"timing {model.name} on {count} threads"):
            result = _result(count, interleaved(actions, rounds, pause / 1e3))
        ours = [_host_copy(session.get_output(i)) for i in range(len(executable.main.outputs))] if created else []
        for name, peer in created.items():
            theirs = peer.outputs()
            result[name]["largest_difference"] = largest_difference(ours, theirs)
            if largest_difference(ours, theirs, args.SMALL_ERROR) > _NOTABLE:
                differing.add(name)
        results.append(result)
    if json:
        emit({"model": str(model), "device": device, "rounds": rounds, "load_before": load,
              "compile_s": opened.compile_s, "results": results})  # fmt: skip
        return
    _print(results, rounds)
    if load > len(os.sched_getaffinity(0)) / 2:
        message(f"the machine was busy before (load {load:.1f}): read the ratio, and repeat when it is quiet")
    if differing:
        message(f"outputs differ from those of {' and '.join(sorted(differing))}: landbridge compare says where")


def _host_copy(tensor: Tensor) -> Any:
    with tensor.host_view("r") as view:
        return view.copy()


def interleaved(
    actions: Mapping[str, Callable[[], object]], rounds: int, pause_s: float = 0.0
) -> dict[str, list[float]]:
    """Returns the milliseconds of one call of each action, by round. A round calls every action once, so that all see
    the same load.

    ``pause_s``: seconds of sleep before each action.
    """
    calls = {}
    for name, action in actions.items():
        action()
        began = time.perf_counter_ns()
        action()
        calls[name] = max(1, _ROUND_NS // max(1, time.perf_counter_ns() - began))
    spent: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(rounds):
        for name, action in actions.items():
            repeat = range(calls[name])
            if pause_s:
                time.sleep(pause_s)
            began = time.perf_counter_ns()
            for _ in repeat:
                action()
            spent[name].append((time.perf_counter_ns() - began) / calls[name] / 1e6)
    return spent


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Returns the 95 % confidence interval, two of ``values``, of the median of their distribution.

    By the ranks of a binomial distribution, approximated (Conover, "Practical Nonparametric Statistics", 1999, section
    3.2): no distribution of times is assumed.
    """
    ordered, count = sorted(values), len(values)
    reach = 1.96 * math.sqrt(count) / 2
    low = max(0, math.floor(count / 2 - reach))
    high = min(count - 1, math.ceil(count / 2 + reach) - 1)
    return ordered[min(low, high)], ordered[max(low, high)]


def _result(threads: int, spent: Mapping[str, list[float]]) -> dict[str, Any]:
    """Returns medians, their intervals, percentiles of rounds, and runs per second; ``ratio`` is our median over that
    of each peer.
    """
    import numpy as np

    result: dict[str, Any] = {"threads": threads}
    for name, milliseconds in spent.items():
        low, high = median_interval(milliseconds)
        median = statistics.median(milliseconds)
        p90, p99 = (float(p) for p in np.percentile(milliseconds, (90, 99)))
        result[name] = {"median_ms": median, "low_ms": low, "high_ms": high, "min_ms": min(milliseconds)}
        result[name] |= {"p90_ms": p90, "p99_ms": p99, "runs_per_s": 1e3 / statistics.fmean(milliseconds)}
    ours = result[OURS]["median_ms"]
    ratios = {name: ours / result[name]["median_ms"] for name in spent if name != OURS}
    for name, ratio in ratios.items():
        result[name]["ratio"] = ratio
    result["ratio"] = max(ratios.values(), default=None)
    return result


def _print(results: list[dict[str, Any]], rounds: int) -> None:
    rows = []
    for result in results:
        for name, times in result.items():
            if not isinstance(times, dict):
                continue
            ratio, differs = times.get("ratio"), times.get("largest_difference")
            rows.append(
                (
                    result["threads"],
                    name,
                    f"{times['median_ms']:.4g}",
                    f"{times['low_ms']:.4g} to {times['high_ms']:.4g}",
                    "" if ratio is None else f"{ratio:.2f}",
                    "" if differs is None else f"{differs:.1e}",
                )
            )
    table(
        f"one run, median of {rounds} alternating rounds",
        ("threads", "runtime", "median ms", "95 % interval", "ours / it", "difference"),
        rows,
    )
    table(
        "rounds",
        ("threads", "runtime", *(name.removesuffix("_ms") + " ms" for name in _PERCENTILES), "runs/s"),
        [
            (result["threads"], name, *(f"{times[key]:.4g}" for key in _PERCENTILES), f"{times['runs_per_s']:,.1f}")
            for result in results
            for name, times in result.items()
            if isinstance(times, dict) and "p90_ms" in times
        ],
    )
