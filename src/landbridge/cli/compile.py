"""``landbridge compile``: compiles a model into an ``.lbx`` file."""

from __future__ import annotations

from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Annotated

from landbridge.cli import arguments as args
from landbridge.cli.device_list import DeviceList
from landbridge.cli.options import CliArgument, CliOption, UsageError
from landbridge.cli.output import emit, table


def compile(
    model: Annotated[Path, CliArgument(metavar="MODEL", exists=True, file=True, help="An .onnx or .mlir file.")],
    output: Annotated[
        Path | None,
        CliOption("--output", "-o", file=True, help="The .lbx file; MODEL with that suffix if absent."),
    ] = None,
    target: args.TargetText = None,
    device: Annotated[
        str | None,
        CliOption(
            "--device",
            "-d",
            help="The device to compile for, by its own description; others after a comma: opencl:0,cpu.",
            completer=args.complete_devices,
        ),
    ] = None,
    place: args.Places = None,
    spill: args.Spills = None,
    alias: args.Aliases = None,
    mutable: args.Mutable = None,
    unpacked: args.Unpacked = None,
    shape: args.Shapes = None,
    dim: args.Dims = None,
    allow_links: args.AllowLinks = False,
    external_data: Annotated[
        Path | None,
        CliOption(
            "--external-data",
            metavar="DIR",
            exists=True,
            folder=True,
            help="The folder that paths to external data begin at; that of MODEL if absent.",
        ),
    ] = None,
    input_spec: args.InputSpecs = None,
    extra_output: Annotated[
        list[str] | None,
        CliOption("--extra-output", metavar="TENSOR", help="An inner tensor to return too; repeat for others."),
    ] = None,
    constant: args.Constants = None,
    constants: Annotated[
        Path | None,
        CliOption(
            "--constants",
            metavar="FILE",
            exists=True,
            file=True,
            help="The constants of IR text: an .npz, a .safetensors, or the .lbx that the IR was dumped for.",
        ),
    ] = None,
    on_mismatch: Annotated[
        str,
        CliOption(
            "--on-mismatch",
            help="For memory that lacks what the target declares: error, or copy.",
            completer=args.choices("error", "copy"),
        ),
    ] = "error",
    max_nodes: Annotated[
        int | None,
        CliOption("--max-nodes", minimum=1, help="The most nodes that the model may have, its loops unrolled."),
    ] = None,
    limit: Annotated[
        list[str] | None,
        CliOption(
            "--limit",
            metavar="NAME=NUMBER",
            help="The most that compiling may take: bytes=, nodes= or seconds=; repeatable.",
        ),
    ] = None,
    dump: Annotated[
        Path | None, CliOption("--dump", metavar="DIR", folder=True, help="Write the IR after each pass there.")
    ] = None,
    check_indices: args.CheckIndices = False,
    sanitize: Annotated[
        bool, CliOption("--sanitize", help="Kernels of a CPU test every index; runs are several times slower.")
    ] = False,
    tune: Annotated[
        float | None,
        CliOption(
            "--tune",
            metavar="SECONDS",
            minimum=0,
            help="Measure other tiles of the slowest kernels on this machine for so long, and keep the fastest.",
        ),
    ] = None,
    verbose: Annotated[
        bool, CliOption("--verbose", "-v", help="Say also how often the model was walked, and why again.")
    ] = False,
    json: args.Json = False,
) -> None:
    """Compile MODEL for a target and write the .lbx, which loads and runs without the compiler."""
    from landbridge.cli.models import begin_llvm, describe_memory, describe_tensor, open_model
    from landbridge.files.output_file import check_outputs

    if model.suffix == ".lbx":
        raise UsageError(f"{model} is compiled already", parameter="MODEL")
    file = output or model.with_suffix(".lbx")
    check_outputs([file], [model, *(() if constants is None else (constants,))])
    begin_llvm(target, device)
    from landbridge.cli.inputs import read_array  # this imports numpy
    from landbridge.targets import Target

    given = {name: read_array(name, array) for name, array in args.parse_arrays(constant, "--constant").items()}
    if constants is not None:
        from landbridge.cli.constant_file import read_constants

        given = {**read_constants(constants, model), **given}
    opened = open_model(
        model,
        target,
        args.parse_shapes(shape),
        devices=None if device is None else DeviceList.parse(device),
        places=args.parse_places(place),
        extra_outputs=extra_output,
        constants=given,
        on_mismatch=on_mismatch,
        max_nodes=max_nodes,
        limits=args.parse_limits(limit),
        dump=dump,
        check_indices=check_indices,
        sanitize=sanitize or None,
        spill=args.parse_spills(spill),
        alias=args.parse_aliases(alias),
        mutable=mutable,
        unpacked=unpacked,
        inputs=args.parse_input_specs(input_spec),
        dims=args.parse_dims(dim),
        allow_links=allow_links,
        external_data=external_data,
        tune=tune,
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
        "dimensions": {name: asdict(declared) for name, declared in executable.dimensions.items()},
        "code_bytes": sum(len(module.image.code) for module in executable.modules),
        "constant_bytes": sum(array.nbytes for array in executable.constants.values()),
        "memory": describe_memory(executable),
    }
    walks = executable.metadata.get("import.walks", "").splitlines() if verbose else []
    if json:
        emit({**result, **({"walks": walks} if verbose else {})})
        return
    columns = ("file", "bytes", "code", "constants", "compile s")
    row = (file, result["bytes"], result["code_bytes"], result["constant_bytes"], f"{opened.compile_s:.2f}")
    table("executable", columns, [row])
    specs = [("input", s) for s in executable.main.inputs] + [("output", s) for s in executable.main.outputs]
    columns = ("", "name", "shape", "dtype", "strides")
    table("tensors", columns, [(k, s.name, s.shape, s.dtype, s.strides or "dense") for k, s in specs])
    if executable.is_open:
        columns = ("name", "from", "to", "multiple of", "likely")
        declared = executable.dimensions.items()
        rows = [(n, d.low, "any" if d.high is None else d.high, d.multiple_of, d.likely or "") for n, d in declared]
        table("dimensions", columns, rows)
    if verbose:
        counted = [(len(list(equal)), why) for why, equal in groupby(walks)]
        table("walks of the model", ("walks", "why"), counted)
    table(
        "memory",
        ("device", "scope", "planned bytes", "lower bound", "proved optimal"),
        [
            (m.device, m.scope, m.planned_bytes, m.lower_bound_bytes, m.proved_optimal)
            for m in executable.memory
            if m.planned_bytes or m.program == "main"
        ],
    )
