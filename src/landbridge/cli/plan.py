"""``landbridge plan``: plan the memory of a list of buffers, or show the plan of an ``.lbx``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from landbridge.cli import arguments as args
from landbridge.cli.output import emit, progress, table


def plan(
    file: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, help="A CSV id,lower,upper,size[,alignment], or .lbx.")
    ],
    capacity: Annotated[int | None, typer.Option(min=0, help="Bytes there are (CSV only).")] = None,
    budget: Annotated[float, typer.Option(min=0, help="Seconds to search for a lower peak (CSV only).")] = 0.5,
    json: args.Json = False,
) -> None:
    """Plan the offsets of the buffers in a CSV file, or show what was planned into an .lbx."""
    result = _of_executable(file) if file.suffix == ".lbx" else _of_csv(file, capacity, budget)
    if json:
        emit(result)
        return
    table(
        "memory",
        ("device", "scope", "planned bytes", "lower bound", "proved optimal"),
        [tuple(entry.values()) for entry in result["memory"]],
    )
    columns = ("buffer", "offset", "size")
    table("buffers", columns, [tuple(entry[c] for c in ("name", "offset", "size")) for entry in result["buffers"]])


def _of_csv(file: Path, capacity: int | None, budget: float) -> dict[str, Any]:
    from landbridge import planner
    from landbridge.planner.csv_reader import read_csv

    buffers = read_csv(file)
    with progress(f"planning {len(buffers)} buffers"):
        found = planner.plan(buffers, capacity=capacity, budget_seconds=budget)
    memory = {
        "device": "",
        "scope": "",
        "planned_bytes": found.peak,
        "lower_bound_bytes": found.lower_bound,
        "proved_optimal": found.proved_optimal,
    }
    entries = [{"name": str(b.id), "offset": found.offsets[b.id], "size": b.size} for b in buffers]
    return {"memory": [memory], "buffers": entries, "seconds": found.seconds}


def _of_executable(file: Path) -> dict[str, Any]:
    from math import prod

    from landbridge.cli.models import describe_memory
    from landbridge.dtypes import dtype
    from landbridge.executable.instructions import AllocTensor
    from landbridge.loader import load

    executable = load(file)
    entries = [
        {
            "name": step.name or f"%{step.dst}",
            "offset": step.offset,
            "size": prod(step.shape) * dtype(step.dtype).itemsize,
        }
        for step in executable.main.instructions
        if isinstance(step, AllocTensor)
    ]
    return {"memory": describe_memory(executable), "buffers": entries}
