"""``python -m tests.release``: tries a wheel and a source archive with each Python that is found.

``--dist FOLDER`` names the folder of both, as ``python -m build`` made them; without it they are built first.
``--only VERSION ...`` limits the Pythons to some of those in tests/selection/pythons.py, ``--python FILE ...`` adds
programs of others. What is not found is listed, and fails with ``--all``: it is never counted as tried.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.release import built_files, programs
from tests.release.check import WITHOUT_COMPILER, FailedInstall, check
from tests.selection import pythons


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.release", description=__doc__)
    parser.add_argument("--dist", type=Path)
    parser.add_argument("--only", nargs="+", default=list(pythons.VERSIONS), choices=pythons.VERSIONS)
    parser.add_argument("--python", nargs="+", type=Path, default=[])
    parser.add_argument("--all", action="store_true", help="a Python that is not found is a failure")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        built = built_files.build(folder / "dist") if options.dist is None else built_files.find(options.dist.resolve())
        print(f"{built.wheel.name} and {built.source.name}", flush=True)
        (folder / "programs").mkdir()
        compiled = programs.write(folder / "programs")
        found = {version: pythons.find(version) for version in options.only}
        for python in options.python:
            found[pythons.version_of(python) or f"{python}, which does not run,"] = python.absolute()
        missing = [version for version, python in found.items() if python is None]
        failed = 0
        for version, python in found.items():
            if python is not None:
                failed += _tried(version, python, built, compiled, folder / version)
    for version in missing:
        print(f"Python {version}: NOT TRIED, as none was found; name one with --python")
    return 1 if failed or (missing and options.all) or len(missing) == len(found) else 0


def _tried(version: str, python: Path, built: built_files.BuiltFiles, compiled: Path, folder: Path) -> int:
    """Prints what came of it; returns how many tests failed."""
    folder.mkdir()
    try:
        counts = check(python, version, built, compiled, folder)
    except (FailedInstall, RuntimeError, OSError) as error:
        print(f"Python {version}: FAILED: {error}", flush=True)
        return 1
    for each in counts:
        print(f"Python {version}, {each.what}: {each.passed} passed, {each.failed} failed, {each.skipped} skipped")
        if each.failed or not each.passed:
            print(each.output)
    if version in WITHOUT_COMPILER:
        print(f"Python {version}: the compiler is not tried, as {WITHOUT_COMPILER[version]}")
    sys.stdout.flush()
    return sum(each.failed or not each.passed for each in counts)


if __name__ == "__main__":
    sys.exit(main())
