"""What ends or stops a process is the result of one test, and the tests after it are run."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from landbridge.device import registry
from landbridge.device.api import Event, Region, Space, Stream
from landbridge.errors import UnknownDeviceError
from landbridge.testing.conformance import isolation
from landbridge.testing.conformance.isolation import IsolatedConformance
from landbridge.testing.conformance.run import sentences
from landbridge.testing.sim_lazy import SimLazyDeviceAPI
from tests.cli.command_line import invoke


class Ending(SimLazyDeviceAPI):
    """Copies crash, allocations with a scope nobody knows end the process, an event of a stream never comes."""

    name = "ending"

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        if scope == "no-such-scope":
            os._exit(7)
        return super().alloc_data_space(index, nbytes, alignment, scope, type_hint)

    def copy_data_from_to(
        self, src: Region, dst: Region, nbytes: int, stream: Stream | None, keep_alive: object
    ) -> Event | None:
        ctypes.string_at(0)
        return None

    def create_stream(self, index: int) -> Stream:
        threading.Event().wait()
        return super().create_stream(index)


@pytest.fixture
def ending() -> Iterator[None]:
    registry.register(Ending())
    yield
    registry.unregister("ending")


@pytest.mark.usefixtures("ending")
def test_a_crash_an_exit_and_a_hang_are_failed_tests() -> None:
    names = ("test_overlap", "test_unknown_scope", "test_stream_order", "test_count")
    with IsolatedConformance("ending", seconds=1.0) as isolated:
        found = {result.name: result for result in isolated.run(names)}
    assert found["test_overlap"].outcome == "fail"
    assert "SIGSEGV" in found["test_overlap"].detail and "string_at" in found["test_overlap"].detail
    assert found["test_overlap"].sentence == "Overlap inside one Space raises unless identical."
    assert "ended with status 7" in found["test_unknown_scope"].detail
    assert found["test_stream_order"].detail.startswith("hangs: not over after 1 seconds")
    assert "create_stream" in found["test_stream_order"].detail  # where it waits
    assert found["test_count"].outcome == "pass"


def test_results_come_one_by_one() -> None:
    with IsolatedConformance("sim:lazy") as isolated:
        first = next(isolated.run())
        assert first.outcome == "pass" and first.seconds > 0


def test_a_device_that_nobody_knows() -> None:
    with pytest.raises(UnknownDeviceError, match="sim:lazy"):
        IsolatedConformance("sim:lasy")


def test_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = {name: sentence for name, sentence in sentences().items() if name in ("test_count", "test_overlap")}
    monkeypatch.setattr(isolation, "sentences", lambda: few)
    made = {}
    for suffix in (".json", ".md"):
        file = tmp_path / f"report{suffix}"
        assert invoke(["conformance", "sim:lazy", "--report", str(file)]).exit_code == 0
        made[suffix] = file.read_text()
    report = json.loads(made[".json"])
    assert report["scopes"]["shared"]["coherent"] is True and "Streams" in report["abilities"]
    assert [(r["name"], r["outcome"]) for r in report["results"]] == [("test_count", "pass"), ("test_overlap", "pass")]
    assert made[".md"].startswith("# Conformance of `sim:lazy:0`")
    assert "| Overlap inside one Space raises unless identical. | `test_overlap` |" in made[".md"]


def test_report_of_another_suffix_is_refused_before_anything_runs(tmp_path: Path) -> None:
    done = invoke(["conformance", "sim:lazy", "--report", str(tmp_path / "report.txt")])
    assert done.exit_code == 1 and not list(tmp_path.iterdir())


def test_pytest_runs_the_suite_of_any_device(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "landbridge.testing.pytest_plugin", "-p", "no:cacheprovider", "-v"]
    requested = [
        "--pyargs",
        "landbridge.testing",
        "--device",
        "sim:lazy",
        "-k",
        "overlap or rows_are_disjoint or test_count",
    ]
    done = subprocess.run([*command, *requested], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "test_sentence[test_overlap] PASSED" in done.stdout
    assert "2 passed, 1 skipped" in done.stdout
    others = subprocess.run([*command, "--device", "x"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "unrecognized arguments: --device" in others.stderr  # a project's own option of that name stays its own
