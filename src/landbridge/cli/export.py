"""``landbridge export``: writes a model as a library for C, without Python."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from landbridge.cli import arguments as args
from landbridge.cli.options import CliArgument, CliOption
from landbridge.cli.output import emit, table


def export(
    model: Annotated[Path, CliArgument(metavar="MODEL", exists=True, file=True, help="An .onnx, .mlir or .lbx file.")],
    c: Annotated[Path, CliOption("--c", metavar="DIR", folder=True, help="Write header and libraries for C there.")],
    name: Annotated[
        str | None, CliOption("--name", help="What names in C begin with; MODEL's own name if absent.")
    ] = None,
    separate_weights: Annotated[
        bool, CliOption("--weights-apart", help="Weights as a file to map, and not inside the libraries.")
    ] = False,
    target: args.TargetText = None,
    shape: args.Shapes = None,
    dim: args.Dims = None,
    allow_links: args.AllowLinks = False,
    input_spec: args.InputSpecs = None,
    constant: args.Constants = None,
    json: args.Json = False,
) -> None:
    """Write MODEL as a C header, a static and a shared library, to be linked without Python."""
    from landbridge.cli.inputs import read_array
    from landbridge.cli.models import describe_tensor, open_model
    from landbridge.executable.c_export import check_name, export_c
    from landbridge.files.output_file import check_folder

    prefix = name or _identifier(model.stem)
    check_name(prefix)
    check_folder(c)
    opened = open_model(
        model,
        target,
        args.parse_shapes(shape),
        inputs=args.parse_input_specs(input_spec),
        dims=args.parse_dims(dim),
        allow_links=allow_links,
        constants={name: read_array(name, array) for name, array in args.parse_arrays(constant, "--constant").items()},
    )
    main = opened.executable.main
    files = export_c(opened.executable, c, prefix, separate_weights=separate_weights)
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
