"""``landbridge opt``: runs passes on IR text, and prints the IR."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from landbridge.cli import arguments as args
from landbridge.cli.options import CliArgument, CliOption, UsageError
from landbridge.cli.output import emit, lines, message, progress, table

if TYPE_CHECKING:
    from landbridge.ir.module import IRModule


def opt(
    file: Annotated[
        Path | None,
        CliArgument(
            metavar="FILE.mlir",
            exists=True,
            file=True,
            help="IR text as passes print it, or an .onnx file to import.",
        ),
    ] = None,
    passes: Annotated[str, CliOption("--passes", "-p", metavar="PASS,PASS", help="The passes to run, in order.")] = "",
    disable: Annotated[
        str, CliOption("--disable", metavar="PASS.RULE,..", help="Rewrites that the passes do not do; --list has all.")
    ] = "",
    output: Annotated[Path | None, CliOption("--output", "-o", file=True, help="Write the IR there.")] = None,
    dump: Annotated[
        Path | None,
        CliOption(
            folder=True,
            help="Write the IR after every pass into this directory.",
        ),
    ] = None,
    emit_source: Annotated[
        Path | None,
        CliOption(
            file=True, metavar="FILE.c", help="After the passes, write the lowered kernels: C11, OpenCL C, SPIR-V."
        ),
    ] = None,
    target: args.TargetText = None,
    shape: args.Shapes = None,
    dim: args.Dims = None,
    allow_links: args.AllowLinks = False,
    list_passes: Annotated[bool, CliOption("--list", help="List the passes and their rewrites, and stop.")] = False,
    json: args.Json = False,
) -> None:
    """Run passes on FILE.mlir, verify after each, and print the IR.

    Without passes the file is read and printed. IR text names the constants and does not hold them: they get values
    seeded by their names, so that a piece of IR runs the same for everyone.
    """
    from landbridge.files.output_file import check_outputs, write_text
    from landbridge.passes import registry

    if list_passes:
        known = [{"name": name, "doc": registry.get(name).doc} for name in registry.names()]
        rules = [{"name": each.name, "doc": each.doc} for each in registry.rewrites()]
        if json:
            emit({"passes": known, "rewrites": rules})
        else:
            table("passes", ("name", "what it does"), [(p["name"], p["doc"]) for p in known])
            table("rewrites", ("name", "what it does"), [(r["name"], r["doc"]) for r in rules])
        return
    if file is None:
        raise UsageError("name the file to read, or ask for --list", parameter="FILE.mlir")
    check_outputs([output, emit_source], [file])
    names, disabled = ([name.strip() for name in text.split(",") if name.strip()] for text in (passes, disable))
    seconds: dict[str, float] = {}
    module = _read(file, target or "llvm", args.parse_shapes(shape), args.parse_dims(dim), allow_links)
    sources = [str(file), *module.sources]
    with progress(f"running {len(names)} passes"):
        module = registry.run_pipeline(module, names, dump=dump, seconds=seconds, sources=sources, disabled=disabled)
        text = module.print()
    if emit_source is not None:
        write_text(emit_source, _source(module), sources)
    if output is not None:
        write_text(output, text, sources)
    if json:
        emit({"passes": names, "seconds": seconds, "ir": text})
    elif output is None:
        lines(text.removesuffix("\n"))


def _source(module: IRModule) -> str:
    """Returns the kernels of ``module``, which may be lowered already, as C or as the source for the target's
    driver.
    """
    from xdsl.dialects.builtin import ModuleOp

    from landbridge.codegen.c import print_source
    from landbridge.codegen.registry import codegen_for
    from landbridge.executable.device_image import DeviceImage
    from landbridge.executable.spirv import disassemble, words_of
    from landbridge.ir.kernel_attributes import task_count
    from landbridge.passes.lower import lower_module
    from landbridge.targets.grid import grid_limits

    functions = [f.clone() for f in module.functions() if task_count(f) is not None]
    lowered = ModuleOp(functions) if functions else lower_module(module)
    target = module.targets[0]
    if grid_limits(target) is None:
        return print_source(lowered)
    image = codegen_for(target.kind)(lowered, target).image
    if isinstance(image, DeviceImage) and image.format == "spirv":
        return disassemble(words_of(image.code)) + "\n"
    if not isinstance(image, DeviceImage) or image.format != "opencl-c":
        raise UsageError(f"kernels of target {target.kind!r} are not text", parameter="--emit-source")
    return image.code.decode()


def _read(
    file: Path,
    target: str,
    shapes: dict[str, tuple[int | str, ...]],
    dims: dict[str, str] | None,
    allow_links: bool,
) -> IRModule:
    from landbridge.targets import Target

    targets = (Target(target),)
    if file.suffix == ".onnx":
        from landbridge.frontend.onnx.data_rules import DataRules
        from landbridge.frontend.onnx.import_request import ImportRequest
        from landbridge.frontend.onnx.importer import import_onnx
        from landbridge.sizes.dim import declared_dimensions
        from landbridge.targets.grid import takes_open_extents

        declared = None if dims is None and not takes_open_extents(targets[0]) else declared_dimensions(dims or {})
        rules = DataRules(allow_links=allow_links)
        return import_onnx(ImportRequest(file, targets, shapes=shapes, dimensions=declared, rules=rules)).module
    if shapes or dims or allow_links:
        raise UsageError(
            "IR text states its shapes and names no files; --shape, --dim and --allow-links are for .onnx files",
            parameter="--shape, --dim, --allow-links",
        )
    from landbridge.errors import ParseError
    from landbridge.ir.constants import fill_missing_constants
    from landbridge.ir.module import IRModule

    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ParseError(f"{file} is no IR text: {error}") from error
    module = IRModule.parse(text, targets)
    filled = fill_missing_constants(module)
    if filled:
        message(f"the text names {len(filled)} constants and holds none: they get values seeded by their names")
    return module
