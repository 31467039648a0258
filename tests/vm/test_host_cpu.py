"""Where /proc and /sys are not mounted, what is said of the machine is what it is, or that it is not known."""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from landbridge.errors import ExecutableError
from landbridge.instruction_sets.processor import from_cpuinfo
from landbridge.instruction_sets.x86_64.processor import CPUID, from_c_library
from landbridge.process import available_memory
from landbridge.vm import host_cpu
from landbridge.vm.code_image import load_image
from tests.vm.programs import code_image

X86 = pytest.mark.usefixtures("an_x86_64")
#: What a child says of the machine, after it has compiled for it, run, saved and loaded.
_SAYS = """
import json
import tempfile
import numpy as np
from onnx import TensorProto, helper
import landbridge as lb
from landbridge.device.attr import DeviceAttr
from landbridge.instruction_sets.x86_64.processor import CPUID
from landbridge.targets.host_caches import cache_bytes
from landbridge.targets.llvm_cpu import host
from landbridge.process.usable_cores import usable_cores
from landbridge.vm import host_cpu

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
known = {name for names in CPUID.values() for name in names}
device = lb.device("cpu:0")
print(json.dumps({
    "features": sorted(known & host_cpu.features()),
    "caches": [cache_bytes(level) for level in (1, 2, 3)],
    "host": [host().cpu, host().cores],
    "assumed": [host().l1_bytes, host().l2_bytes],
    "cores": usable_cores(),
    "memory": str(device.attr(DeviceAttr.TOTAL_MEMORY)),
}))
"""


@pytest.fixture
def an_x86_64() -> None:
    if platform.machine() != "x86_64":
        pytest.skip("of other processors the C library says it elsewhere")


def output(*command: str) -> dict[str, object]:
    child = subprocess.run(
        [*command, sys.executable, "-c", _SAYS],
        capture_output=True,
        text=True,
        env={**os.environ, "LANDBRIDGE_CACHE": "0"},
        timeout=300,
    )
    assert child.returncode == 0, child.stderr
    found: dict[str, object] = json.loads(child.stdout)
    return found


@X86
def test_without_proc_and_sys_the_machine_is_what_it_is() -> None:
    hidden = ("unshare", "-rm", "sh", "-c", 'mount -t tmpfs none /proc && mount -t tmpfs none /sys && exec "$@"', "sh")
    try:
        tried = subprocess.run([*hidden, "test", "!", "-e", "/proc/cpuinfo"], capture_output=True, check=False)
    except OSError:
        pytest.skip("there is no unshare")
    if tried.returncode != 0:
        pytest.skip(f"no mounts of its own for a process: {tried.stderr.decode()}")
    want, found = output(), output(*hidden)
    for key in ("features", "host", "cores"):
        assert found[key] == want[key], key
    assert all(ours in (theirs, None) for ours, theirs in zip(found["caches"], want["caches"], strict=True))  # type: ignore[call-overload]
    # What a compile assumes where nobody says it: what a core has at least.
    defaults = (32 << 10, 256 << 10)
    for ours, theirs, default in zip(found["assumed"], want["assumed"], defaults, strict=True):  # type: ignore[call-overload]
        assert ours in (theirs, default)
    assert found["memory"] in ("None", want["memory"])


@X86
def test_the_c_library_says_what_cpuinfo_says() -> None:
    known = {name for names in CPUID.values() for name in names}
    assert from_c_library() == known & from_cpuinfo()


def test_features_that_are_not_known_are_not_called_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_cpu, "features", frozenset)
    with pytest.raises(ExecutableError, match=r"\(avx2\), and which this machine has is not known"):
        load_image(replace(code_image(), features=("avx2",)))
    assert load_image(replace(code_image(), features=())).address("double")


def test_what_is_left_of_a_limit_is_not_made_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without /proc it is not known what of the address space is taken: the whole limit is not what is available."""
    monkeypatch.setattr(available_memory, "_PROCESS", tmp_path / "none")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (32 << 20, 32 << 20))
    assert not list(available_memory._of_process())


def test_without_proc_the_group_is_the_root_of_what_is_mounted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, text in (("max", "104857600"), ("current", "94371840"), ("stat", "anon 5\nactive_file 0\n")):
        (tmp_path / f"memory.{name}").write_text(text)
    monkeypatch.setattr(available_memory, "_GROUPS", tmp_path / "none")
    monkeypatch.setattr(available_memory, "_MOUNT", tmp_path)
    assert [left for left, _ in available_memory._of_groups()] == [10 << 20]
