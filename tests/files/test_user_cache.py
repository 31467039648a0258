"""The user's cache folder, and everything that wants one, where the user has no home."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from landbridge.files.user_cache import user_cache
from tests.selection.installed import program

#: Runs before all else: no entry in the system's list of users, whoever runs the tests.
_NO_USER = """
import pwd
def nobody(number): raise KeyError(f"getpwuid(): uid not found: {number}")
pwd.getpwuid = nobody
"""
_PROGRAM = """
import os, numpy as np, landbridge as lb
from tests.whole_models.small_models import add
for target, device in (("llvm", "cpu"), ("c", "cpu"), ("opencl", "opencl"), ("vulkan", "vulkan")):
    try:
        where = lb.device(device)
    except lb.DeviceIndexError:
        continue  # no driver here
    session = lb.Session(lb.compile(add(), target), where, num_threads=1)
    (y,) = session(lb.asarray(np.ones(64, np.float32), device=where))
    assert y.to_device("cpu").numpy()[63] == 64
    print(target, end=" ")
"""


def python(code: str, *before: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """``code`` in a process whose environment is ``variables`` and what it takes to run at all."""
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = {"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": paths, **variables}
    return subprocess.run(
        [*before, sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"XDG_CACHE_HOME": "/one", "HOME": "/two"}, Path("/one")),
        ({"XDG_CACHE_HOME": "one", "HOME": "/two"}, Path("/two/.cache")),
        ({"HOME": "/two"}, Path("/two/.cache")),
        ({"HOME": "two"}, None),
    ],
)
def test_by_the_environment(variables, expected, monkeypatch):
    for name in ("XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert user_cache() == expected


def test_a_user_without_a_home_compiles_and_runs():
    done = python(
        f"{_NO_USER}\nfrom landbridge.files.user_cache import user_cache\nassert user_cache() is None\n{_PROGRAM}"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split()[:2] == ["llvm", "c"]


def test_a_command_of_a_user_without_a_home():
    code = f"{_NO_USER}\nimport sys\nfrom landbridge.cli import main\nsys.argv = ['landbridge', 'cache']\nmain()"
    done = python(code)
    assert done.returncode == 0 and done.stderr.startswith("nothing is kept: ") and done.stderr.count("\n") == 1


def test_a_number_that_is_no_user():
    program("setpriv", "debian")
    if os.geteuid() != 0:
        pytest.skip("it takes root to be another user")
    done = python(
        "import os, sys; from landbridge.files.cache_folder import open_folder; print(os.getuid(), open_folder())",
        *("setpriv", "--reuid=12345", "--clear-groups"),
    )
    if "Permission denied" in done.stderr or "No module named" in done.stderr:
        pytest.skip("this checkout or Python is for its own user alone")
    assert (done.stdout.split(), done.stderr) == (["12345", "None"], "")
