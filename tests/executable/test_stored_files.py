"""Files that earlier versions wrote keep loading and give what they gave.

``stored/VERSION-*.lbx`` are of one convolution, a Relu and a mean over the picture, for any x86-64: of a known width,
of an open one, and with a weight that may be replaced; from version 10 on, which only files with loops have, of a Scan
over vectors that are added to half of what it carries; from version 11 on, which only files with launches of open sizes
have, of the same convolution in OpenCL C; from version 12 on, which only files with inputs or outputs in rows have, of
the same convolution of a picture in rows of sim:scratch; from version 13 on, which only files with open dimensions
have, of the convolution of an open width. A new format version adds its own; none is ever made again.
"""

from __future__ import annotations

import platform
from pathlib import Path

import numpy as np
import pytest

import landbridge as lb
from landbridge.executable.header import FORMAT_VERSION, OLDEST_VERSION
from tests.selection.installed import package

STORED = Path(__file__).with_name("stored")
ALL = sorted(STORED.glob("*.lbx"))


def of_file(file: Path) -> np.ndarray:
    """The weight that it was compiled with: the three of a version were drawn one after the other."""
    rng = np.random.default_rng(0)
    for kind in (("known", "opencl", "rows"), "open", "weights"):
        weight = rng.standard_normal((4, 3, 3, 3)).astype(np.float32)
        if file.stem.endswith(kind):
            return weight
    raise AssertionError(file)


def expected(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    padded = np.pad(x[0], ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    return np.maximum(np.einsum("chwij,kcij->khw", windows, weight), 0).mean((1, 2)).reshape(1, 4, 1, 1)


def test_there_are_files_of_every_version_that_is_read() -> None:
    versions = {int(file.stem.partition("-")[0]) for file in ALL}
    assert versions == set(range(OLDEST_VERSION, FORMAT_VERSION + 1))
    for file in ALL:
        assert file.stem.startswith(f"{int.from_bytes(file.read_bytes()[8:12], 'little')}-")


def check_results(file: Path) -> None:
    """Fail unless ``file``, which is called like one of ``ALL``, gives what that gave."""
    is_opencl = file.stem.endswith("opencl")
    if is_opencl:
        package("pyopencl", "test")
    elif platform.machine() != "x86_64":
        pytest.skip("the stored code is of x86-64")
    device = "opencl" if is_opencl else "sim:scratch" if file.stem.endswith("rows") else "cpu"
    session = lb.Session(lb.load(file, verify="all"), device=device)
    (_check_loop if file.stem.endswith("loop") else _check_convolution)(session, file)


def _check_convolution(session: lb.Session, file: Path) -> None:
    weight = of_file(file)
    for width in (8, 21) if file.stem.endswith(("open", "opencl")) else (8,):
        x = np.random.default_rng(width).standard_normal((1, 3, 6, width)).astype(np.float32)
        session.set_input("x", x)
        session.run()
        found = np.asarray(session.get_output(0).to_device("cpu"))
        np.testing.assert_allclose(found, expected(x, weight), rtol=1e-4, atol=1e-5)
    if file.stem.endswith("weights"):
        session.set_params({"k": 2 * weight})
        np.testing.assert_allclose(np.asarray(session(x)[0]), expected(x, 2 * weight), rtol=1e-4, atol=1e-5)


def _check_loop(session: lb.Session, _: Path) -> None:
    for steps in (1, 40):
        xs = np.random.default_rng(steps).standard_normal((steps, 6)).astype(np.float32)
        state, rows = np.zeros(6, np.float64), []
        for x in xs:
            state = state / 2 + x
            rows.append(state)
        last, stacked = session(np.zeros(6, np.float32), xs)
        np.testing.assert_allclose(np.asarray(last), state, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(np.asarray(stacked), rows, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("file", ALL, ids=lambda file: file.stem)
def test_a_file_gives_what_it_gave(file: Path) -> None:
    check_results(file)
