"""Opens a model file: compiles an ``.onnx`` or loads an ``.lbx``; and describes the result."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from landbridge.cli.options import UsageError
from landbridge.cli.output import progress
from landbridge.errors import UnsupportedError

if TYPE_CHECKING:
    from landbridge.cli.device_list import DeviceList
    from landbridge.executable.executable import Executable
    from landbridge.executable.parts import TensorSpec
    from landbridge.sizes.terms import Symbol


@dataclass(frozen=True)
class Opened:
    """An Executable and the seconds it took to compile it (0 when it was loaded)."""

    executable: Executable
    compile_s: float


def open_model(
    model: Path,
    target: str | None,
    shapes: Mapping[str, tuple[int | str, ...]],
    devices: DeviceList | None = None,
    places: Mapping[str, str] | None = None,
    **options: Any,
) -> Opened:
    """Returns the Executable of ``model`` for ``target``, else for ``devices`` as they describe themselves, else this
    host.

    ``options`` are others of ``landbridge.compile``; one that is empty or None is left out, and a float never is. An
    ``.lbx`` is compiled already: options of the compiler raise UsageError.
    """
    declared: dict[str, Any] = {option: value for option, value in options.items() if value or isinstance(value, float)}
    if model.suffix == ".lbx":
        if target is not None or shapes or places or declared:
            raise UsageError(
                f"{model} is compiled already; --target, --shape, --dim, --place, --spill, --alias, --mutable, "
                "--input-spec, --check-indices, --allow-links and --optimize are for the model it came from"
            )
        from landbridge.loader import load

        return Opened(load(model), 0.0)
    began = time.perf_counter()
    with progress(f"compiling {model.name}"):
        from landbridge.compiler.api import check_compiler, compile

        check_compiler()  # describing a target needs it too
        wanted = target or ("llvm" if devices is None else devices.target())
        executable = compile(model, wanted, shapes=shapes, place=places or None, **declared)
    return Opened(executable, time.perf_counter() - began)


def begin_llvm(target: str | None, device: str | None) -> None:
    """Starts a process for LLVM, where compiling for ``target``, else for ``device``, needs it; an early call hides its
    startup time.
    """
    if device is None and (target or "llvm").split()[:1] == ["llvm"]:
        from landbridge.process.llvm_process import begin

        begin()


def at_sizes(executable: Executable, files: Mapping[str, Path], at: Mapping[str, int]) -> Executable:
    """Returns ``executable`` for the sizes of the arrays in ``files``, by input; else for those of ``at``, by open
    dimension, and for expected ones. A program in segments, as data decide sizes, has inputs of these sizes; a run
    determines the others.

    Raises ShapeError where the arrays do not fit it, or ``at`` has an illegal value.
    """
    if not executable.is_open:
        if at:
            raise UsageError("every extent of the program is a number already", parameter="--at")
        return executable
    import numpy as np

    from landbridge.executable.bound_sizes import ProgramsByShapes, first_that_fits, programs_of
    from landbridge.executable.executable import is_cut

    read = [spec.name for spec in executable.main.inputs if spec.elements]
    names = ["main"]
    if not is_cut(executable) and all(name in files for name in read):
        elements = {name: np.load(files[name]).reshape(-1).tolist() for name in read}
        shapes = [np.load(file, mmap_mode="r").shape for file in files.values()]
        names = programs_of(ProgramsByShapes(executable.programs).of(shapes), elements)
    return first_that_fits(names, lambda name: _program_at(executable.program(name), files, at))


def _program_at(executable: Executable, files: Mapping[str, Path], at: Mapping[str, int]) -> Executable:
    """Returns the one program ``executable`` at sizes, as ``at_sizes`` does."""
    import numpy as np

    from landbridge.executable.bound_sizes import BoundSizes
    from landbridge.executable.executable import is_cut
    from landbridge.executable.instance import dimensions, instance
    from landbridge.sizes.size import Size, expected_size, of_symbol

    bound = BoundSizes()
    for spec in executable.main.inputs:
        if spec.name in files:
            array = np.load(files[spec.name], mmap_mode="r")
            bound.add(spec, array.shape)
            if spec.elements:
                bound.add_elements(spec, array.reshape(-1).tolist())
    expected_sizes = {name: expected_size(of_symbol(s)) for name, s in dimensions(executable.main).items()}
    if not is_cut(executable):
        return instance(executable, {**expected_sizes, **at, **bound.values})
    known = {**{n: expected_size(of_symbol(s)) for n, s in _of_inputs(executable).items()}, **at, **bound.values}
    unknown = sorted(at.keys() - _of_inputs(executable).keys())
    if unknown:
        raise UsageError(
            f"{', '.join(unknown)}: the data decide it; legal: {', '.join(_of_inputs(executable)) or 'none'}",
            parameter="--at",
        )
    shapes = [tuple(e.at(known) if isinstance(e, Size) else e for e in s.shape) for s in executable.main.inputs]
    inputs = tuple(replace(s, shape=shape) for s, shape in zip(executable.main.inputs, shapes, strict=True))
    main = replace(executable.main, inputs=inputs)
    return replace(executable, functions={**executable.functions, "main": main})


def to_run(opened: Executable, sized: Executable) -> Executable:
    """Returns the program that a Session runs for ``sized``, which is ``opened`` at sizes: segments get their sizes in
    a run.
    """
    from landbridge.executable.executable import is_cut

    return opened if is_cut(opened) else sized


def refuse_pieces(executable: Executable, model: Path, subject: str) -> None:
    """Raises UnsupportedError where ``executable`` runs in segments, but ``subject`` needs a program of one
    segment.
    """
    from landbridge.executable.executable import is_cut
    from landbridge.executable.segments import segments_of

    if is_cut(executable):
        raise UnsupportedError(
            f"{model.name} is cut into {len(segments_of(executable))} segments, as data decide sizes in it, and "
            f"{subject} is for programs of one segment; `landbridge run`, `bench` and `compare` take it as it is"
        )


def _of_inputs(executable: Executable) -> dict[str, Symbol]:
    from landbridge.sizes.size import dimensions_of

    return dimensions_of(e for spec in executable.main.inputs for e in (*spec.shape, *spec.elements))


def describe_tensor(spec: TensorSpec) -> dict[str, object]:
    """Returns the JSON form of an input or output."""
    described: dict[str, object] = {"name": spec.name, "shape": list(spec.shape), "dtype": spec.dtype}
    return described | ({"strides": list(spec.strides)} if spec.strides else {})


def describe_memory(executable: Executable) -> list[dict[str, object]]:
    """Returns the JSON form of the storage plan of the first program, or of its segments: one entry per (device,
    scope).

    Sizes are bytes.
    """
    from landbridge.executable.executable import is_cut

    cut = is_cut(executable)
    reports = [asdict(report) for report in executable.memory if cut or report.program == "main"]
    return [{key: value for key, value in report.items() if key != "program"} for report in reports]
