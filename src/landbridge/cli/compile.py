"""``landbridge compile``: compile a model into an ``.lbx`` file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from landbridge.cli import arguments as args
from landbridge.cli.device_list import DeviceList
from landbridge.cli.output import emit, table


def compile_(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", exists=True, dir_okay=False, help="An .onnx or .mlir file.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", dir_okay=False, help="The .lbx file; MODEL with that suffix if absent."),
    ] = None,
    target: args.TargetText = None,
    device: Annotated[
        str | None,
        typer.Option(
            "--device", "-d", help="The device to compile for as it describes itself, others behind it: opencl:0,cpu."
        ),
    ] = None,
    place: args.Places = None,
    spill: args.Spills = None,
    mutable: args.Mutable = None,
    shape: args.Shapes = None,
    input_spec: args.InputSpecs = None,
    check_indices: args.CheckIndices = False,
    json: args.Json = False,
) -> None:
    """Compile MODEL for a target and write the .lbx, which loads and runs without the compiler."""
    from landbridge.cli.models import describe_memory, describe_tensor, open_model
    from landbridge.output_file import check_outputs
    from landbridge.targets import Target

    if model.suffix == ".lbx":
        raise typer.BadParameter(f"{model} is compiled already", param_hint="MODEL")
    file = output or model.with_suffix(".lbx")
    check_outputs([file], [model])
    opened = open_model(
        model,
        target,
        args.parse_shapes(shape),
        devices=None if device is None else DeviceList.parse(device),
        places=args.parse_places(place),
        check_indices=check_indices,
        spill=args.parse_spills(spill),
        mutable=mutable,
        specs=args.parse_input_specs(input_spec),
    )
    executable = opened.executable
    executable.save(file)
    result = {
        "file": str(file),
        "bytes": file.stat().st_size,
        "compile_s": opened.compile_s,
        "targets": [Target.from_json(module.target).to_dict() for module in executable.modules],
        "inputs": [describe_tensor(spec) for spec in executable.main.inputs],
        "outputs": [describe_tensor(spec) for spec in executable.main.outputs],
        "code_bytes": sum(len(module.image.code) for module in executable.modules),
        "constant_bytes": sum(array.nbytes for array in executable.constants.values()),
        "memory": describe_memory(executable),
    }
    if json:
        emit(result)
        return
    columns = ("file", "bytes", "code", "constants", "compile s")
    row = (file, result["bytes"], result["code_bytes"], result["constant_bytes"], f"{opened.compile_s:.2f}")
    table("executable", columns, [row])
    specs = [("input", s) for s in executable.main.inputs] + [("output", s) for s in executable.main.outputs]
    columns = ("", "name", "shape", "dtype", "strides")
    table("tensors", columns, [(k, s.name, s.shape, s.dtype, s.strides or "dense") for k, s in specs])
    table(
        "memory",
        ("device", "scope", "planned bytes", "lower bound", "proved optimal"),
        [(m.device, m.scope, m.planned_bytes, m.lower_bound_bytes, m.proved_optimal) for m in executable.memory],
    )
