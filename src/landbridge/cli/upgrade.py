"""``landbridge upgrade``: programs that earlier versions saved, in the format of this one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from landbridge.cli import arguments as args
from landbridge.cli.options import CliArgument, CliOption, UsageError
from landbridge.cli.output import emit, error, line, warning

if TYPE_CHECKING:
    from landbridge.executable.executable import Executable


def upgrade(
    files: Annotated[list[Path], CliArgument(metavar="FILE.lbx", help="A compiled program; one or several.")],
    output: Annotated[
        Path | None,
        CliOption(
            "--output", "-o", metavar="OUT.lbx", file=True, help="Where one FILE.lbx goes; its own place if absent."
        ),
    ] = None,
    json: args.Json = False,
) -> None:
    """Verify each FILE.lbx and write it again in the newest format; older ones load without that.

    A file is replaced when the new one is complete, and keeps its mode; one that is as this version writes it already
    is left as it is. A file that cannot be upgraded is reported and the others are done; the exit code is 1 then.
    Earlier versions of Landbridge may refuse the new file.

    Nothing is compiled: an .lbx holds machine code and weights, and no model. Faster kernels, another target and
    the place of a host operator that is no more need `landbridge compile` on the model.
    """
    if output is not None and len(files) > 1:
        raise UsageError(f"{output} cannot hold {len(files)} programs; upgrade them one by one", parameter="--output")
    from landbridge.cli.app import EXIT_ERROR

    done: list[dict[str, Any]] = []
    for file in files:
        done.append(_upgraded(file, output))
        if not json and "error" not in done[-1]:
            line(_described(done[-1]))
    failed = [entry["error"] for entry in done if "error" in entry]
    if json:
        emit({"files": done} | ({"error": {**failed[0], "exit_code": EXIT_ERROR}} if failed else {}))
    if failed:
        raise SystemExit(EXIT_ERROR)


def _upgraded(file: Path, output: Path | None) -> dict[str, Any]:
    """Upgrade ``file`` and return the JSON form of what became of it; what is wrong is printed at once."""
    from landbridge.errors import LandbridgeError
    from landbridge.executable.upgrade import upgrade_file

    try:
        found = upgrade_file(file, output)
    except (LandbridgeError, OSError) as problem:
        error(str(problem))
        return {"file": str(file), "error": {"kind": type(problem).__name__, "message": str(problem)}}
    missing = _missing(found.program)
    if missing:
        warning(
            f"{file} calls {', '.join(missing)} of the host, which this version of Landbridge does not have: it will "
            "not run; compile its model again"
        )
    return {
        "file": str(file),
        "output": str(output or file),
        "from_format": found.format_before,
        "to_format": found.format_after,
        "from_bytes": found.bytes_before,
        "to_bytes": found.bytes_after,
        "written": found.written,
        "missing_host_operators": missing,
    }


def _missing(program: Executable) -> list[str]:
    """Returns the names of Landbridge's own functions that ``program`` calls and this version lacks.

    Those that other packages registered are left out: a process that imports the package has them.
    """
    from landbridge.executable.host_calls import host_calls
    from landbridge.operators.implementations import HOST_PREFIX
    from landbridge.vm.host_functions import is_known

    owned = [name for name, module in host_calls(program).items() if not module]
    return [name.removeprefix(HOST_PREFIX) for name in owned if not is_known(name)]


def _described(entry: dict[str, Any]) -> str:
    if not entry["written"]:
        return f"{entry['file']}: format {entry['from_format']}, {entry['from_bytes']:,} bytes, left as it is"
    where = "" if entry["output"] == entry["file"] else f", in {entry['output']}"
    formats = f"format {entry['from_format']} to {entry['to_format']}"
    return f"{entry['file']}: {formats}, {entry['from_bytes']:,} to {entry['to_bytes']:,} bytes{where}"
