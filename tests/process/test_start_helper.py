"""Helpers are started by one module, which processes that start none do not import."""

from __future__ import annotations

import subprocess
import sys

from landbridge.process.start_helper import run_helper, start_helper


def test_a_helper_answers_by_its_pipes() -> None:
    with start_helper("sys.stdout.write(sys.stdin.read().upper())") as helper:
        assert helper.communicate(b"text") == (b"TEXT", None)
    assert helper.returncode == 0


def test_the_output_of_a_helper_is_text() -> None:
    done = run_helper("print(sys.argv[1:]); sys.exit(3)", ["an argument"])
    assert (done.stdout, done.returncode) == ("['an argument']\n", 3)


def test_a_target_of_this_machine_starts_none() -> None:
    code = "import sys; from landbridge.targets import Target; Target('llvm'); print('subprocess' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
