"""``landbridge new-device``: what it writes is the example, conforms, and runs networks; what it refuses."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from wheel_models import CLASSIFY, PP_OCR, wheel_model

from tests.cli.command_line import invoke
from tests.plugins.test_installed_plugins import SOURCES, install

ROOT = Path(__file__).parents[2]

#: PP-OCR's classifier on the device, alone and with the CPU, against onnxruntime; a device called as the argument.
CLASSIFIER = """
import sys
import numpy as np
import onnxruntime
import landbridge as lb

name, model = sys.argv[1:]
x = (np.random.default_rng(1).standard_normal((1, 3, 48, 192)) * 0.3).astype(np.float32)
(wanted,) = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {"x": x})
assert wanted.std() > 0.01
target = lb.Target.from_device(lb.device(name))
for place in (None, "*[02468]"):
    targets = target if place is None else {"npu": target, "cpu": "llvm"}
    executable = lb.compile(model, targets, shapes={"x": x.shape}, place={place: "cpu"} if place else None)
    devices = {"device": name} if place is None else {"devices": {"npu": name, "cpu": "cpu"}}
    session = lb.Session(executable, **devices)
    session.set_input("x", x)
    with lb.ledger() as moves:
        session.run()
    assert [move for move in moves if not move.is_kernel] == []  # the CPU works in the device's memory
    found = np.asarray(session.get_output(0).to_device("cpu"))
    error = np.abs(found - wanted).max() / np.abs(wanted).max()
    print(place, error)
    assert error < 1e-4
"""


def written(folder: Path) -> dict[str, bytes]:
    """The files below ``folder`` by path, what tools leave there apart."""
    files = {p.relative_to(folder): p for p in folder.rglob("*") if p.is_file()}
    return {
        str(path): p.read_bytes() for path, p in files.items() if not re.search(r"(^|/)(\.|__pycache__)", str(path))
    }


def new_device(*arguments: str, exit_code: int = 0) -> str:
    done = invoke(["new-device", *arguments])
    assert done.exit_code == exit_code, done.output
    return done.output


def test_the_example_is_what_it_writes(tmp_path: Path) -> None:
    new_device("mynpu", "--into", str(tmp_path))
    made = written(tmp_path / "mynpu")
    assert made == written(ROOT / "examples" / "mynpu")
    assert "landbridge_mynpu/device.py" in made


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a device of another name than the example's is installed."""
    folder = tmp_path_factory.mktemp("new")
    new_device("tall_one", "--into", str(folder))
    install(folder / "tall_one", folder / "site")
    return folder / "site"


def run(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(site), str(SOURCES)])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=300)


def test_it_says_its_own_name_alone(site: Path) -> None:
    texts = [p.read_text() for p in site.parent.joinpath("tall_one").rglob("*") if p.is_file()]
    assert len(texts) > 7 and not [t for t in texts if "mynpu" in t.lower() or "${" in t]
    assert any("class TallOneDeviceAPI(DeviceAPI)" in t for t in texts)


@pytest.mark.full
def test_it_conforms(site: Path) -> None:
    done = run(site, "-m", "landbridge", "conformance", "tall_one")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.full
def test_it_runs_a_classifier_alone_and_with_the_cpu(site: Path) -> None:
    done = run(site, "-c", CLASSIFIER, "tall_one", str(wheel_model(PP_OCR, CLASSIFY)))
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2


@pytest.mark.full
def test_its_own_tests_of_networks_pass(site: Path) -> None:
    tests = site.parent / "tall_one" / "tests"
    done = run(site, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "network", str(tests))
    assert done.returncode == 0 and "3 passed" in done.stdout, done.stdout


@pytest.mark.full
def test_the_example_in_an_environment_of_its_own(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    example = shutil.copytree(ROOT / "examples" / "mynpu", tmp_path / "mynpu")
    for package in (f"{ROOT}[test]", f"{example}[test]"):
        done = subprocess.run(
            [python, "-m", "pip", "install", "-q", package], capture_output=True, text=True, cwd=tmp_path, timeout=600
        )
        assert done.returncode == 0, done.stderr
    for arguments in (
        ["-m", "pytest", "-q", "-p", "no:cacheprovider", str(example / "tests")],
        ["-c", CLASSIFIER, "mynpu", str(wheel_model(PP_OCR, CLASSIFY))],
    ):
        done = subprocess.run([python, *arguments], capture_output=True, text=True, cwd=tmp_path, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["", "Npu", "my-npu", "1st", "a__b", "npu_", "class", "../npu", "a" * 41])
def test_a_name_that_cannot_be_one(name: str, tmp_path: Path) -> None:
    output = new_device(name, "--into", str(tmp_path), exit_code=1)
    assert repr(name) in output and "legal: lower-case" in output
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["cpu", "llvm", "vulkan"])
def test_a_name_that_is_taken(name: str, tmp_path: Path) -> None:
    assert "choose another name" in new_device(name, "--into", str(tmp_path), exit_code=1)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_exists_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "npu").mkdir()
    (tmp_path / "npu" / "mine.txt").write_text("mine")
    assert "exists" in new_device("npu", "--into", str(tmp_path), exit_code=1)
    assert written(tmp_path) == {"npu/mine.txt": b"mine"}
