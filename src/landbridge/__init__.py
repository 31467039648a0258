"""Landbridge compiles a model for a target and runs it on any device, with nothing copied that need not be.

::

    import landbridge as lb

    executable = lb.compile("model.onnx", target="llvm")
    session = lb.Session(executable, device="cpu")
    outputs = session(frame)

Names are imported when first used: loading and running a compiled program needs none of the compiler's packages.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from landbridge.compiler import compile as compile
    from landbridge.device.device import Device as Device
    from landbridge.device.registry import device as device
    from landbridge.executable.executable import Executable as Executable
    from landbridge.loader import load as load
    from landbridge.memory.ledger import ledger as ledger
    from landbridge.memory.ledger import no_copies as no_copies
    from landbridge.module import Module as Module
    from landbridge.session import Session as Session
    from landbridge.target import Target as Target
    from landbridge.tensor import Tensor as Tensor
    from landbridge.tensor import asarray as asarray
    from landbridge.tensor import empty as empty
    from landbridge.tensor import from_dlpack as from_dlpack
    from landbridge.tensor import from_dma_buf as from_dma_buf

#: Where each public name is defined; the errors are all in ``landbridge.errors``.
_HOME = {
    "Device": "landbridge.device.device",
    "Executable": "landbridge.executable.executable",
    "Module": "landbridge.module",
    "Session": "landbridge.session",
    "Target": "landbridge.target",
    "Tensor": "landbridge.tensor",
    "asarray": "landbridge.tensor",
    "compile": "landbridge.compiler",
    "empty": "landbridge.tensor",
    "from_dlpack": "landbridge.tensor",
    "from_dma_buf": "landbridge.tensor",
    "ledger": "landbridge.memory.ledger",
    "load": "landbridge.loader",
    "no_copies": "landbridge.memory.ledger",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif name == "device":
        # the package itself is callable: importing any part of it makes it an attribute here
        value = import_module("landbridge.device")
    else:
        errors = import_module("landbridge.errors")
        value = getattr(errors, name, None)
        if not (isinstance(value, type) and issubclass(value, errors.LandbridgeError)):
            raise AttributeError(f"module 'landbridge' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    errors = import_module("landbridge.errors")
    raised = [name for name, value in vars(errors).items() if isinstance(value, type)]
    return sorted({*globals(), *_HOME, "device", *raised})
