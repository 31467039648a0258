"""Code generators read the Target and nothing else: they import no device, and compiling asks none."""

from __future__ import annotations

import subprocess
import sys

import pytest

RUN_SIDE = ("device", "devices", "memory", "tensor", "dlpack", "vm", "session", "module", "loader", "testing")

PROGRAM = """
import importlib.abc, sys

forbidden = tuple("landbridge." + name for name in {run_side!r})

class Guard(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if any(name == part or name.startswith(part + ".") for part in forbidden):
            raise SystemExit("compiling imported " + name)
        return None

sys.meta_path.insert(0, Guard())
import onnx
from onnx import TensorProto, helper
import landbridge as lb

info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4, 8]) for n in "abc"]
node = helper.make_node("Add", ["a", "b"], ["c"])
model = helper.make_model(helper.make_graph([node], "add", info[:2], info[2:]))
executable = lb.compile(model, {target!r})
assert executable.modules[0].image.code
print("compiled")
"""


@pytest.mark.sample(1)
@pytest.mark.parametrize("target", ["llvm", "c", "llvm -mcpu=x86-64-v3"])
def test_compiling_imports_nothing_of_the_run_side(target: str) -> None:
    """No device can be asked by code that was never loaded."""
    program = PROGRAM.format(run_side=RUN_SIDE, target=target)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "compiled\n"), done.stderr


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_compiling_touches_no_device_of_this_process(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Devices are registered here already, as in any program that runs what it compiles; all of them are traps."""
    from onnx import TensorProto, helper

    import landbridge as lb
    from landbridge.device import registry
    from landbridge.devices.cpu import CpuDeviceAPI

    def trap(*_: object, **__: object) -> None:
        raise AssertionError("compiling asked a device")

    lb.empty((1,), dtype="float32")
    resolved = lb.Target(target)
    for holder in (registry, CpuDeviceAPI):
        for name, value in list(vars(holder).items()):
            owned = getattr(value, "__module__", "").startswith("landbridge.device")
            if callable(value) and owned and not name.startswith("__") and not isinstance(value, type):
                monkeypatch.setattr(holder, name, trap)
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4, 8]) for n in "abc"]
    graph = helper.make_graph([helper.make_node("Mul", ["a", "b"], ["c"])], "mul", info[:2], info[2:])
    with pytest.raises(AssertionError, match="asked a device"):
        registry.device("cpu")  # the trap works
    assert lb.compile(helper.make_model(graph), resolved).modules[0].image.code
