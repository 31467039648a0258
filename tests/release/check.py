"""Tries the built files with one Python: an environment of its own, and nothing of the repository on its path."""

from __future__ import annotations

import os
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.release.built_files import BuiltFiles

#: Pythons that what the compiler needs has no wheels for, and why. There the rest is tried.
WITHOUT_COMPILER = {"3.10": "xdsl needs Python 3.11"}
#: Tests of the source archive that threads are the subject of, tried on the wheel.
OF_SOURCE = (
    "tests/session/test_many_threads.py",
    "tests/session/test_threads.py",
    "tests/session/test_pool.py",
    "tests/vm/test_thread_pool.py",
    "tests/process/test_locks.py",
)
#: Seconds after which an install or the tests have hung.
LIMIT = 900
_INSTALLED = Path(__file__).with_name("installed")
#: Of this environment what downloads need.
_RETAINED = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")


@dataclass(frozen=True)
class Counts:
    """Tests of one run, ``what`` was tried; ``output`` is pytest's."""

    what: str
    passed: int
    failed: int
    skipped: int
    output: str


class FailedInstall(RuntimeError):
    """The built file did not install; the text is pip's."""


def check(python: Path, version: str, built: BuiltFiles, programs: Path, folder: Path) -> list[Counts]:
    """Tries ``built`` with ``python`` of ``version`` in the empty ``folder``; ``programs`` are for installations
    without a compiler.

    Raises FailedInstall, and RuntimeError where pytest itself does not run.
    """
    environment = _Environment(folder, programs, built.version)
    environment.create(python)
    copied = shutil.copytree(_INSTALLED, folder / "tests" / "installed")
    environment.install(str(built.wheel), "pytest")
    counts = [environment.test("light install", copied, ["light"])]
    if version not in WITHOUT_COMPILER:
        source = built.unpack_source(folder / "source")
        environment.install(f"{built.wheel}[compile]", "hypothesis", "onnxruntime")
        counts.append(environment.test("with the compiler", copied, ["light", "compiling"]))
        counts.append(environment.test("source archive's tests of threads", source, OF_SOURCE))
    return counts


def _of_the_tests(output: str) -> str:
    """Returns the lines of ``output`` that say which test ran and where it stood, without pytest's own frames."""
    return "\n".join(line for line in output.splitlines() if "/_pytest/" not in line and "/pluggy/" not in line)


class _Environment:
    """A virtual environment in ``folder``, and programs that see nothing but it."""

    def __init__(self, folder: Path, programs: Path, version: str) -> None:
        self._folder = folder
        self.python = folder / "environment" / "bin" / "python"
        retained = {name: value for name, value in os.environ.items() if name in _RETAINED or _of_downloads(name)}
        self._variables = {
            **retained,
            "PATH": f"{self.python.parent}:/usr/bin:/bin",
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "LANDBRIDGE_RELEASE_PROGRAMS": str(programs),
            "LANDBRIDGE_RELEASE_VERSION": version,
        }

    def create(self, python: Path) -> None:
        self._run([str(python), "-I", "-m", "venv", str(self.python.parents[1])])

    def install(self, *requirements: str) -> None:
        """As wheels alone: what would have to be built is no test of ours."""
        pip = [str(self.python), "-I", "-m", "pip", "install", "--quiet", "--no-compile"]
        options = ["--disable-pip-version-check", "--only-binary=:all:"]
        home = {"HOME": os.environ.get("HOME", "/")}  # downloads are kept there
        done = self._run([*pip, *options, *requirements], fails=True, more=home)
        if done.returncode:
            raise FailedInstall(f"pip install {' '.join(requirements)}:\n{done.stdout}{done.stderr}")

    def test(self, what: str, folder: Path, files: Sequence[str]) -> Counts:
        report = self._folder / "report.xml"
        report.unlink(missing_ok=True)
        options = ["-v", "-o", "addopts=", "-o", "faulthandler_timeout=300", "-p", "no:cacheprovider"]
        where = [f"--junitxml={report}", "--rootdir", str(folder)]
        command = [str(self.python), "-m", "pytest", *options, *where, *files]
        done = self._run(command, fails=True, where=folder)
        output = done.stdout + done.stderr
        if done.returncode not in (0, 1) or not report.exists():
            raise RuntimeError(f"pytest ended with {done.returncode} ({what}):\n{_of_the_tests(output)}")
        (suite,) = ElementTree.parse(report).getroot().iter("testsuite")
        tests, failures, errors, skipped = (
            int(suite.attrib[name]) for name in ("tests", "failures", "errors", "skipped")
        )
        return Counts(what, tests - failures - errors - skipped, failures + errors, skipped, output)

    def _run(
        self, command: list[str], *, fails: bool = False, where: Path | None = None, more: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        variables = {**self._variables, **(more or {})}
        done = subprocess.run(
            command, cwd=where or self._folder, env=variables, capture_output=True, text=True, timeout=LIMIT
        )
        if done.returncode and not fails:
            raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done


def _of_downloads(name: str) -> bool:
    return name.startswith("PIP_") or name.lower().endswith("_proxy")
