"""The commands on programs whose inputs are frames."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import landbridge as lb
from tests.cli.command_line import invoke
from tests.session.test_frames import PITCH, SPEC, camera, network, seen_of


def command(*words: str | Path) -> dict[str, object]:
    done = invoke([*map(str, words), "--json"])
    assert done.exit_code == 0, done.stderr
    printed: dict[str, object] = json.loads(done.stdout)
    return printed


def test_run_gives_frames_their_pitch(tmp_path: Path) -> None:
    lb.compile(network(), inputs={"x": SPEC}).save(tmp_path / "frames.lbx")
    np.save(tmp_path / "frame.npy", camera())
    given = f"x={tmp_path / 'frame.npy'}"
    printed = command("run", tmp_path / "frames.lbx", "--input", given, "--output-dir", tmp_path, "--threads", "1")
    assert printed["copies"] == []
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), seen_of(camera()))


def test_trace_and_plan_take_frames(tmp_path: Path) -> None:
    file = tmp_path / "frames.lbx"
    lb.compile(network(), inputs={"x": SPEC}).save(file)
    for words in (("trace", file, "--output", tmp_path / "trace.json"), ("plan", file)):
        command(*words)


def test_strides_are_described() -> None:
    from landbridge.cli.models import describe_tensor

    (spec,) = lb.compile(network(), inputs={"x": SPEC}).main.inputs
    assert describe_tensor(spec)["strides"] == [SPEC.strides[0], PITCH, 3, 1]
