"""Code is mapped where systems let no memory become executable, and says why where they let nothing be."""

import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from landbridge.errors import ExecutableError, OutOfMemoryError
from landbridge.process import executable_pages
from landbridge.process.executable_pages import CodePages

#: In a child: PR_SET_MDWE, with which no page may become executable that was not from the start.
_NO_NEW_CODE = """
import ctypes
if ctypes.CDLL(None, use_errno=True).prctl(65, 1, 0, 0, 0) != 0:
    raise SystemExit(77)
"""
#: In a child: a filter of system calls that refuses memfd_create, as a service manager's may.
_NO_MEMFD = """
import ctypes, os, platform, struct
number = {"x86_64": 319, "aarch64": 279}[platform.machine()]
rows = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *row) for row in rows))
program = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(rows), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
    raise SystemExit(77)
try:
    os.memfd_create("refused")
except PermissionError:
    pass
else:
    raise SystemExit("the filter lets memfd_create pass")
"""
_COMPILE_AND_RUN = """
import tempfile
import numpy as np
from onnx import TensorProto, helper
import landbridge as lb

a, b, c = (helper.make_tensor_value_info(name, TensorProto.FLOAT, (64, 64)) for name in "abc")
graph = helper.make_graph([helper.make_node("MatMul", ["a", "b"], ["c"])], "product", [a, b], [c])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
x = np.random.default_rng(0).random((64, 64), np.float32)
program = lb.compile(model)
with tempfile.TemporaryDirectory() as folder:
    program.save(f"{folder}/product.lbx")
    for each in (program, lb.load(f"{folder}/product.lbx")):
        (y,) = lb.Session(each, num_threads=1)(x, x)
        assert np.allclose(np.from_dlpack(y), x @ x, atol=1e-3)
print("ran")
"""


def run_child(*parts: str, **environment: str) -> str:
    """What a child prints that runs ``parts``. Skips the test where this kernel lacks what the first asks for."""
    child = subprocess.run(
        [sys.executable, "-c", "\n".join(parts)],
        capture_output=True,
        text=True,
        env={**os.environ, "LANDBRIDGE_CACHE": "0", **environment},
        timeout=300,
    )
    if child.returncode == 77:
        pytest.skip("this kernel has no such restriction")
    assert child.returncode == 0, child.stderr
    return child.stdout


def test_no_memory_need_become_executable():
    """As with systemd's MemoryDenyWriteExecute=: compile, save, load, run."""
    assert run_child(_NO_NEW_CODE, _COMPILE_AND_RUN) == "ran\n"


def test_memfd_create_may_be_refused_as_well():
    assert run_child(_NO_NEW_CODE, _NO_MEMFD, _COMPILE_AND_RUN) == "ran\n"


def test_an_error_says_what_was_refused(monkeypatch):
    def refuse(*_: object, **__: object) -> int:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    def read_only(*_: object, **__: object) -> int:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "memfd_create", refuse)
    monkeypatch.setattr(tempfile, "mkstemp", read_only)
    for call in ("map_file", "protect"):
        monkeypatch.setattr(executable_pages, call, refuse)
    with pytest.raises(ExecutableError, match=r"a memfd: Operation not permitted; .*Read-only file system; .*TMPDIR"):
        CodePages(4096).fill(bytes(4096))


def test_a_folder_mounted_noexec_is_an_error_too(monkeypatch):
    """The kernel refuses to map what such a folder has, with EPERM, and so does this stand-in for its calls."""

    def refuse(*_: object) -> int:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    for call in ("map_file", "protect"):
        monkeypatch.setattr(executable_pages, call, refuse)
    with pytest.raises(ExecutableError, match="noexec"):
        CodePages(4096).fill(bytes(4096))


def test_a_process_that_may_write_no_file_runs_code():
    """As with ``ulimit -f 0``, where no memory is forbidden to become executable."""
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))"
    run = (
        _COMPILE_AND_RUN.partition("with tempfile")[0]
        + """
(y,) = lb.Session(program, num_threads=1)(x, x)
assert np.allclose(np.from_dlpack(y), x @ x, atol=1e-3)
print("ran")
"""
    )
    assert run_child(limit, run) == "ran\n"


def test_no_address_space_is_out_of_memory():
    with pytest.raises(OutOfMemoryError, match="bytes of code"):
        CodePages(1 << 60)


def test_nothing_can_write_to_the_pages_or_their_file():
    pages = CodePages(8192)
    pages.fill(b"\xc3" * 5000)
    (line,) = (
        line for line in Path("/proc/self/maps").read_text().splitlines() if line.startswith(f"{pages.base:08x}-")
    )
    assert line.split()[1] == "r-xp"
    assert line.split()[0] == f"{pages.base:08x}-{pages.base + 8192:08x}"


def test_dropped_pages_are_unmapped():
    pages = CodePages(1 << 20)
    pages.fill(bytes(1 << 20))
    base = f"{pages.base:08x}-"
    assert any(line.startswith(base) for line in Path("/proc/self/maps").read_text().splitlines())
    del pages
    assert not any(
        line.startswith(base) and "landbridge-code" in line for line in Path("/proc/self/maps").read_text().splitlines()
    )
