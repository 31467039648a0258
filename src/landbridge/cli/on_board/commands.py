"""Parts of commands that run on a board: options for its landbridge, and copies of the files it wrote."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from landbridge.array_type import Array
from landbridge.cli.on_board.board import Board
from landbridge.cli.sanitize import EXIT_FOUND
from landbridge.dtypes import numpy_dtype

if TYPE_CHECKING:
    from landbridge.executable.executable import Executable
    from landbridge.executable.parts import Function
    from landbridge.roofline import MachineLimits, TimedKernel
    from landbridge.targets import Target
    from landbridge.tensor import Tensor


def declared_options(**options: object) -> list[str]:
    """Returns the command-line form of options, as ``["--memory-cfg", "naive"]`` of ``memory_cfg=["naive"]``; None and
    False are left out.
    """
    words: list[str] = []
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, list):
            words += [word for each in value for word in (option, each)]
        elif value is True:
            words.append(option)
        elif value is not None and value is not False:
            words += [option, str(value)]
    return words


def run_there(
    board: Board,
    executable: Executable,
    options: Sequence[str],
    files: Mapping[str, Path],
    output_dir: Path | None,
    trace: Path | None,
    sources: Sequence[Path],
) -> tuple[dict[str, Any], int]:
    """Runs ``landbridge run`` there; returns its JSON and exit code, and writes its files here."""
    from landbridge.files.output_file import make_folder, open_output, write_text

    writes = {name: path for name, path in (("--output-dir", output_dir), ("--trace", trace)) if path is not None}
    answer = board.command("run", executable, options, files, writes, may_end_with=[EXIT_FOUND])
    retained: list[str | Path] = [*executable.sources, *sources]
    if output_dir is not None:
        make_folder(output_dir)
        for output in answer.result["outputs"]:
            name = PurePosixPath(output["file"]).name
            with open_output(output_dir / name, retained) as content:
                content.write(answer.files[f"output-dir/{name}"])
            output["file"] = str(output_dir / name)
    if trace is not None:
        write_text(trace, answer.files["trace"].decode(), retained)
    return {**answer.result, "on": board.address}, answer.code


def values_there(
    board: Board, executable: Executable, sized: Function, options: Sequence[str], inputs: Mapping[str, Tensor]
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Returns inputs and outputs by name of one run there; ``sized``: the program with numbers as extents."""
    feeds = {}
    with TemporaryDirectory() as folder:
        files = {}
        for number, (name, tensor) in enumerate(inputs.items()):
            with tensor.host_view("r") as view:
                feeds[name] = view.copy()
            files[name] = Path(folder) / f"{number}.npy"
            np.save(files[name], feeds[name])
        answer = board.command("run", executable, [*options, "--repeat", "1"], files, {"--output-dir": Path("outputs")})
    outputs = {}
    for spec, described in zip(sized.outputs, answer.result["outputs"], strict=True):
        array = np.load(io.BytesIO(answer.files[f"output-dir/{PurePosixPath(described['file']).name}"]))
        outputs[spec.name] = array if array.dtype.name == spec.dtype else array.view(numpy_dtype(spec.dtype))
    return feeds, outputs


def explained_there(
    board: Board, executable: Executable, target: Target | None, options: Sequence[str], files: Mapping[str, Path]
) -> tuple[list[TimedKernel], MachineLimits | None, int]:
    """Returns each kernel of warm runs there with its time, the limits of the board, and its number of threads.

    A board without the compiler runs programs from here that measure its limits.
    """
    from landbridge.cli.machine_limits import ROUNDS, measured_limits
    from landbridge.roofline import Level, MachineLimits, TimedKernel

    result = board.command("explain", executable, options, files).result
    names = [field.name for field in fields(TimedKernel)]
    timed = [
        TimedKernel(**{name: kernel[name] for name in names} | {"weighed": tuple(kernel["weighed"])})
        for kernel in result["kernels"]
    ]
    threads, declared = result["threads"], result["limits"]

    def seconds(program: Executable, count: int) -> float:
        measured = board.command("run", program, declared_options(repeat=ROUNDS, threads=count)).result
        return float(measured["latency_ms"]["min"]) / 1e3

    if declared is not None:
        levels = tuple(Level(**level) for level in declared["levels"])
        return timed, MachineLimits(declared["threads"], declared["flops"], levels), threads
    return timed, None if target is None else measured_limits(target, threads, seconds), threads
