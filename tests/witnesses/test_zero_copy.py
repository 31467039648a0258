"""A run copies nothing: what the ledger says, and three witnesses that share no code with it.

Address identity, mutation after binding, and a counter of memcpy and memmove preloaded into another process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import landbridge as lb
from tests.whole_models.small_models import edges, projection

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def executable() -> lb.Executable:
    return lb.compile(edges())


def frame(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((1, 3, 128, 160), np.float32)


def test_the_ledger_shows_no_byte_and_no_copies_agrees(executable):
    session = lb.Session(executable)
    x, y = frame(0), np.empty((1, 16, 128, 160), np.float32)
    with lb.no_copies(), lb.ledger() as moves:
        session.set_input_zero_copy("x", x)
        session.set_output_zero_copy(0, y)
        session.run()
        session(x)
    assert moves.total_bytes == 0
    with lb.ledger() as moves:
        session.set_input("x", x)
    assert [(move.nbytes, move.cause, move.tensor) for move in moves] == [(x.nbytes, "set_input", "x")]
    with lb.no_copies(), pytest.raises(lb.CopyForbiddenError):
        session.set_input("x", x)


def test_addresses_are_those_of_the_caller(executable):
    session = lb.Session(executable)
    x, y = frame(0), np.empty((1, 16, 128, 160), np.float32)
    session.set_input_zero_copy("x", x)
    session.set_output_zero_copy(0, y)
    session.run()
    assert np.asarray(session.get_input("x")).ctypes.data == x.ctypes.data
    assert np.asarray(session.get_output(0)).ctypes.data == y.ctypes.data
    assert np.asarray(session(x, out=[y])[0]).ctypes.data == y.ctypes.data


def test_a_run_sees_what_was_written_after_binding(executable):
    session = lb.Session(executable)
    x = frame(0)
    session.set_input_zero_copy("x", x)
    session.run()
    before = np.array(session.get_output(0))
    x[...] = frame(1)
    session.run()
    with session.get_output(0).host_view("r") as after:
        np.testing.assert_array_equal(after, np.asarray(lb.Session(executable)(frame(1))[0]))
        assert not np.array_equal(before, after)


def test_the_next_run_writes_into_the_array_bound_as_output(executable):
    session, y = lb.Session(executable), np.full((1, 16, 128, 160), np.nan, np.float32)
    session.set_input_zero_copy("x", frame(2))
    session.set_output_zero_copy(0, y)
    assert np.isnan(y).all()
    session.run()
    np.testing.assert_array_equal(y, np.asarray(lb.Session(executable)(frame(2))[0]))


def test_weights_are_used_where_the_file_is_mapped(tmp_path):
    file = tmp_path / "projection.lbx"
    lb.compile(projection()).save(file)
    loaded = lb.load(file)
    mapped = [
        tuple(int(bound, 16) for bound in line.split()[0].split("-"))
        for line in Path("/proc/self/maps").read_text().splitlines()
        if line.endswith(file.name)
    ]
    large = [array for array in loaded.constants.values() if array.nbytes >= 1 << 20]
    assert large
    for array in large:
        assert any(low <= array.ctypes.data and array.ctypes.data + array.nbytes <= high for low, high in mapped)


@pytest.fixture(scope="module")
def counter(tmp_path_factory) -> Path:
    library = tmp_path_factory.mktemp("counter") / "counter.so"
    # the loops must stay loops: as calls of memcpy they would call themselves
    plain = ["-O3", "-fno-builtin", "-fno-tree-loop-distribute-patterns"]
    subprocess.run(
        ["gcc", "-shared", "-fPIC", *plain, "-o", library, HERE / "memcpy_counter.c"],
        check=True,
    )
    return library


@pytest.mark.sample(2)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("model", [edges, projection])
def test_a_preloaded_counter_sees_no_large_copy(model, threads, counter, tmp_path):
    executable = lb.compile(model())
    executable.save(tmp_path / "model.lbx")
    child = subprocess.run(
        [sys.executable, HERE / "zero_copy_child.py", tmp_path / "model.lbx", str(threads)],
        env=os.environ | {"LD_PRELOAD": str(counter)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert child.returncode == 0, child.stderr
    seen = json.loads(child.stdout)
    for step in ("bind", "first_run", "runs", "read", "call", "bind_again"):
        assert seen[step] == {"calls": 0, "bytes": 0}, step
    # the counter does see copies of each kind, so that zero above means something
    nbytes = 4 * int(np.prod(executable.main.inputs[0].shape))
    assert seen["set_input"] == {"calls": 1, "bytes": nbytes}
    assert seen["memmove"]["calls"] == 1
    if model is projection:
        weights = sum(array.nbytes for array in executable.constants.values())
        assert seen["load"]["bytes"] < weights / 4
