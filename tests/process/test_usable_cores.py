"""Cores by affinity and quota: files of control groups as both versions write them, and Sessions that ask for more."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
import pytest

import landbridge as lb
from landbridge.process import usable_cores as module
from landbridge.process.usable_cores import usable_cores
from tests.vm import programs


def grouped(root: Path, lines: str, files: dict[str, str], monkeypatch: pytest.MonkeyPatch, cores: int = 8) -> None:
    """This process is in the groups that ``lines`` name, whose ``files`` lie below ``root``, on ``cores`` cores."""
    (root / "groups").write_text(lines)
    for name, text in files.items():
        file = root / "mount" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.setattr(module, "_GROUPS", str(root / "groups"))
    monkeypatch.setattr(module, "_MOUNT", str(root / "mount"))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))


@pytest.mark.parametrize(
    ("lines", "files", "cores"),
    [
        ("0::/\n", {}, 8),
        ("0::/\n", {"cpu.max": "max 100000\n"}, 8),
        ("0::/\n", {"cpu.max": "200000 100000\n"}, 2),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "150000 100000\n"}, 2),  # part of a core is one
        ("0::/a/b\n", {"cpu.max": "50000 100000\n"}, 1),
        ("0::/a\n", {"a/cpu.max": "3200000 100000\n"}, 8),  # more than there are
        ("0::/a\n", {"a/cpu.max": "none\n"}, 8),
        (
            "4:cpu,cpuacct:/x\n",
            {"cpu,cpuacct/x/cpu.cfs_quota_us": "300000", "cpu,cpuacct/x/cpu.cfs_period_us": "100000"},
            3,
        ),
        ("4:cpu,cpuacct:/x\n", {"cpu/x/cpu.cfs_quota_us": "-1\n", "cpu/x/cpu.cfs_period_us": "100000"}, 8),
        ("1:memory:/x\n", {"memory/x/cpu.cfs_quota_us": "100000", "memory/x/cpu.cfs_period_us": "100000"}, 8),
    ],
)
def test_quotas_bound_the_cores(
    lines: str, files: dict[str, str], cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grouped(tmp_path, lines, files, monkeypatch)
    assert usable_cores() == cores


def test_without_groups_affinity_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_GROUPS", str(tmp_path / "none"))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5})
    assert usable_cores() == 2


def test_more_threads_than_cores_warn_and_are_as_many_as_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("landbridge.vm.thread_pool.usable_cores", lambda: 2)
    program = programs.two_stages()
    with pytest.warns(lb.ThreadCountWarning, match="num_threads is 1000, and this process may use 2 cores") as reported:
        session = lb.Session(program, num_threads=1000)
    assert reported[0].filename == __file__
    assert session._executor.program.threads <= 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = lb.Session(program, num_threads=2)
    inputs = [np.full(spec.shape, n + 1, spec.dtype) for n, spec in enumerate(program.main.inputs)]
    for ours, theirs in zip(session(*inputs), expected(*inputs), strict=True):
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))
