"""``landbridge export``: writes a model for C or for JavaScript, without Python."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from landbridge.cli import arguments as args
from landbridge.cli.options import CliArgument, CliOption, UsageError
from landbridge.cli.output import emit, table


def export(
    model: Annotated[Path, CliArgument(metavar="MODEL", exists=True, file=True, help="An .onnx, .mlir or .lbx file.")],
    c: Annotated[
        Path | None, CliOption("--c", metavar="DIR", folder=True, help="Write header and libraries for C there.")
    ] = None,
    wasm: Annotated[
        Path | None,
        CliOption("--wasm", metavar="DIR", folder=True, help="Write a module of JavaScript and WebAssembly there."),
    ] = None,
    name: Annotated[
        str | None, CliOption("--name", help="What names of files and in C begin with; MODEL's own name if absent.")
    ] = None,
    separate_weights: Annotated[
        bool, CliOption("--weights-apart", help="Weights as a file to map, and not inside the libraries.")
    ] = False,
    ram: Annotated[
        int | None,
        CliOption("--ram", metavar="BYTES", help="Memory that a program for a microcontroller may take.", minimum=0),
    ] = None,
    target: args.TargetText = None,
    shape: args.Shapes = None,
    dim: args.Dims = None,
    allow_links: args.AllowLinks = False,
    input_spec: args.InputSpecs = None,
    constant: args.Constants = None,
    json: args.Json = False,
) -> None:
    """Write MODEL for use without Python: a C header with libraries, or a module of JavaScript and WebAssembly.

    For a microcontroller (-t cortex-m4, or freestanding), C11 to be compiled without an operating system.
    """
    from landbridge.cli.inputs import read_array
    from landbridge.cli.models import describe_tensor, open_model
    from landbridge.executable.c_export import check_name, export_c
    from landbridge.executable.wasm_export import export_wasm
    from landbridge.files.output_file import check_folder

    folder = c if wasm is None else wasm
    if folder is None or (c is not None and wasm is not None):
        raise UsageError(f"{'both' if c else 'neither'} of --c and --wasm given; legal: one of them, with a folder")
    if wasm is not None and separate_weights:
        raise UsageError("--weights-apart is for --c; weights for WebAssembly are always a file")
    if wasm is not None and ram is not None:
        raise UsageError("--ram is for --c and a microcontroller; a program of WebAssembly grows its memory")
    prefix = name or _identifier(model.stem)
    check_name(prefix)
    check_folder(folder)
    opened = open_model(
        model,
        "wasm" if wasm is not None and target is None and model.suffix != ".lbx" else target,
        args.parse_shapes(shape),
        inputs=args.parse_input_specs(input_spec),
        dims=args.parse_dims(dim),
        allow_links=allow_links,
        constants={name: read_array(name, array) for name, array in args.parse_arrays(constant, "--constant").items()},
    )
    main = opened.executable.main
    if wasm is None:
        files = export_c(opened.executable, folder, prefix, separate_weights=separate_weights, ram_bytes=ram)
    else:
        files = export_wasm(opened.executable, folder, prefix)
    if json:
        emit(
            {
                "files": [str(file) for file in files],
                "inputs": [describe_tensor(spec) for spec in main.inputs],
                "outputs": [describe_tensor(spec) for spec in main.outputs],
            }
        )
        return
    table("files", ("file", "bytes"), [(file, file.stat().st_size) for file in files])


def _identifier(text: str) -> str:
    """Returns ``text`` in a form that may begin names in C."""
    word = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:40]
    return word if word[:1].isalpha() else f"model_{word}".rstrip("_")
