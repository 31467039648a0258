"""``landbridge compare``: finds the first tensor that differs from a reference run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

from landbridge.cli import arguments as args
from landbridge.cli.device_list import DeviceList
from landbridge.cli.options import CliArgument, CliOption, UsageError
from landbridge.cli.output import emit, line, progress, table

if TYPE_CHECKING:
    import numpy as np

    from landbridge.cli.reference import Reference
    from landbridge.executable.executable import Executable

    Array = np.ndarray[Any, Any]

EXIT_DIFFERS = 3


def compare(
    model: Annotated[Path, CliArgument(metavar="MODEL", exists=True, file=True, help="An .onnx file.")],
    target: args.TargetText = None,
    device: args.DeviceTexts = "cpu",
    place: args.Places = None,
    shape: args.Shapes = None,
    dim: args.Dims = None,
    allow_links: args.AllowLinks = False,
    at: args.At = None,
    input: args.Inputs = None,
    threads: args.Threads = None,
    seed: args.Seed = 0,
    tolerance: Annotated[
        float, CliOption(minimum=0, help="Largest error allowed, as a share of the reference's largest magnitude.")
    ] = 1e-4,
    absolute: Annotated[
        float,
        CliOption(
            minimum=0,
            help="Errors up to this do not count as a difference: onnxruntime's sigmoid is off by 1e-7 where it is "
            "near 0.",
        ),
    ] = args.SMALL_ERROR,
    every: Annotated[
        bool,
        CliOption(
            "--every",
            help="Compare every intermediate even when the outputs agree.",
        ),
    ] = False,
    on: args.On = None,
    json: args.Json = False,
) -> None:
    """Run MODEL here, or on a board (`--on`), and in onnxruntime here, and report the first tensor that differs.

    The outputs are compared first. When one differs, the model is compiled again with every intermediate as an
    output, and those are compared in the order of the file. Exits with 3 when anything differs.
    """
    from landbridge.cli.inputs import make_inputs
    from landbridge.cli.models import at_sizes, open_model, to_run
    from landbridge.cli.on_board.board import Board
    from landbridge.cli.on_board.commands import declared_options, values_there

    if model.suffix == ".lbx":
        raise UsageError("a reference run needs the .onnx file", parameter="MODEL")
    from landbridge.cli.reference import Reference  # this imports onnx

    files, shapes = args.parse_arrays(input), args.parse_shapes(shape)
    declared, values = args.parse_dims(dim), args.parse_at(at)
    devices, places = DeviceList.parse(device), args.parse_places(place)
    reference = Reference(model, allow_links)
    board = None if on is None else Board.reach(on, device, target, model)
    wanted = target if board is None else board.target(target, model)

    def ours(path: Path) -> tuple[dict[str, Array], dict[str, Array]]:
        compiled_for = devices if board is None else None
        opened = open_model(
            path, wanted, shapes, devices=compiled_for, places=places, dims=declared, allow_links=allow_links
        )
        if board is not None:
            sized = at_sizes(opened.executable, files, values)
            options = declared_options(device=device, threads=threads)
            return values_there(board, opened.executable, sized.main, options, make_inputs(sized, files, "cpu", seed))
        sized = at_sizes(opened.executable, files, values)
        return _run(sized, to_run(opened.executable, sized), files, devices, threads, seed)

    feeds, outputs = ours(model)
    with progress("running the reference"):
        expected = reference.values(feeds)
    found = [
        _difference(name, outputs[name], expected[name], tolerance, absolute) for name in _common(outputs, expected)
    ]
    intermediates: list[dict[str, Any]] = []
    if every or not all(entry["equal"] for entry in found):
        exposed = _run_exposed(reference, expected, ours)
        intermediates = [_difference(name, exposed[name], expected[name], tolerance, absolute) for name in exposed]
    _report(model, found, intermediates, on, json)


def _run(
    sized: Executable,
    executable: Executable,
    files: Mapping[str, Path],
    devices: DeviceList,
    threads: int | None,
    seed: int,
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Returns the inputs and outputs of one local run by name, as new arrays."""
    from landbridge.cli.inputs import make_inputs
    from landbridge.session import Session

    session = Session(executable, device=devices.first, devices=devices.bindings(executable), num_threads=threads)
    feeds = {}
    for name, tensor in make_inputs(sized, files, devices.of_inputs(sized), seed).items():
        session.set_input_zero_copy(name, tensor)
        with tensor.host_view("r") as view:
            feeds[name] = view.copy()
    session.run()
    outputs = {}
    for number, spec in enumerate(executable.main.outputs):
        with session.get_output(number).host_view("r") as view:
            outputs[spec.name] = view.copy()
    return feeds, outputs


def _run_exposed(reference: Reference, expected: Mapping[str, Array], ours: Any) -> dict[str, Array]:
    """Returns Landbridge's intermediate values, in the order of the file."""
    with TemporaryDirectory() as directory:
        file = Path(directory) / "every_intermediate.onnx"
        reference.save_exposed(expected, file)
        _, values = ours(file)
    return {name: values[name] for name in _common(expected, values)}


def _common(first: Mapping[str, Array], second: Mapping[str, Array]) -> list[str]:
    return [name for name in first if name in second]


def _difference(name: str, ours: Array, expected: Array, tolerance: float, absolute: float = 0.0) -> dict[str, Any]:
    """Returns the entry of the report on the difference of ``ours`` from ``expected``."""
    import numpy as np

    entry: dict[str, Any] = {"name": name, "shape": list(ours.shape), "dtype": ours.dtype.name}
    if ours.shape != expected.shape or ours.dtype != expected.dtype:
        found = {"shape": list(expected.shape), "dtype": expected.dtype.name}
        return {**entry, "equal": False, "reference": found, "max_abs_error": None, "max_magnitude": None}
    exact = ours.dtype.kind in "biu"
    a, b = np.broadcast_arrays(ours.astype(np.float64), expected.astype(np.float64))
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):  # infinities of one sign are equal, but their difference is NaN
        error = float(np.max(np.where(same, 0.0, np.abs(a - b)), initial=0.0))
    finite = b[np.isfinite(b)]
    magnitude = float(np.max(np.abs(finite), initial=0.0))
    close = bool(same.all()) if exact else error <= max(tolerance * magnitude, absolute)
    # JSON has no NaN or infinity: an error without a number is null.
    return {
        **entry,
        "equal": close,
        "max_abs_error": error if np.isfinite(error) else None,
        "max_magnitude": magnitude,
    }


def _report(
    model: Path, outputs: list[dict[str, Any]], values: list[dict[str, Any]], on: str | None, json: bool
) -> None:
    first = next((entry for entry in [*values, *outputs] if not entry["equal"]), None)
    equal = first is None
    if json:
        emit(
            {
                "model": str(model),
                "on": on,
                "equal": equal,
                "first_difference": first,
                "outputs": outputs,
                "intermediates_compared": len(values),
                "intermediates_different": [entry["name"] for entry in values if not entry["equal"]],
            }
        )
    else:
        columns = ("name", "shape", "dtype", "max_abs_error", "max_magnitude", "equal")
        table("outputs", columns, [[entry[c] for c in columns] for entry in outputs])
        differing = [entry for entry in values if not entry["equal"]]
        table("intermediates that differ", columns, [[entry[c] for c in columns] for entry in differing[:10]])
        line(_verdict(first, values))
    if not equal:
        raise SystemExit(EXIT_DIFFERS)


def _verdict(first: dict[str, Any] | None, values: list[dict[str, Any]]) -> str:
    if first is None:
        return f"no difference ({len(values)} intermediates compared)" if values else "no difference"
    if values and all(entry["equal"] for entry in values):
        return (
            f"the output {first['name']!r} differs, and every intermediate agrees when it is an output: "
            "the difference comes from fusing or from memory reuse"
        )
    return f"the first tensor that differs is {first['name']!r}"
