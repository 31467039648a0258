"""Landbridge compiles a model for a target and runs it on any device, with nothing copied that need not be.

::

    import landbridge as lb

    executable = lb.compile("model.onnx", target="llvm")
    session = lb.Session(executable, device="cpu")
    outputs = session(frame)

Names are imported when first used: loading and running a compiled program needs none of the compiler's packages.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from landbridge.named_devices import find_by
from landbridge.process import locks as locks  # imported first, so that a fork waits for the imports that follow
from landbridge.process.exhaustion import reports_exhaustion
from landbridge.process.garbage import collector_paused

__all__ = [
    "AccessError",
    "BindError",
    "BoardError",
    "BudgetError",
    "CodegenError",
    "CompileError",
    "ContextLostError",
    "CopyForbiddenError",
    "Device",
    "DeviceError",
    "DeviceIndexError",
    "DeviceLostError",
    "DeviceNameTakenError",
    "DeviceSuspendedError",
    "DeviceTypeTakenError",
    "DeviceVersionError",
    "Dim",
    "Executable",
    "ExecutableError",
    "FallbackWarning",
    "Fence",
    "ForkedDeviceError",
    "HostAccessError",
    "HostViewError",
    "ImportModelError",
    "IndexRangeError",
    "InputError",
    "InputSpec",
    "JobTimeoutError",
    "KernelBuildError",
    "LandbridgeError",
    "Limits",
    "MissingFileError",
    "ModelWarning",
    "Module",
    "NodeError",
    "NotPicklableError",
    "OutOfMemoryError",
    "OutputFileError",
    "ParseError",
    "PlacementError",
    "PlanError",
    "Pool",
    "ResourceLimitError",
    "RunTimeoutError",
    "SanitizerError",
    "ScatteredMemoryError",
    "ScatteredMemoryWarning",
    "ScheduleError",
    "ScopeBusyError",
    "Session",
    "SessionBusyError",
    "ShapeError",
    "SlowMemoryWarning",
    "State",
    "StateCapacityError",
    "StorageError",
    "StorageInUseError",
    "Stream",
    "Target",
    "TargetError",
    "Tensor",
    "ThreadCountWarning",
    "UndecidedSizeError",
    "UnknownArgumentError",
    "UnknownDeviceError",
    "UnreadableFileError",
    "UnsupportedError",
    "UnsupportedOperatorError",
    "UseAfterFreeError",
    "VerifyError",
    "ZeroCopyError",
    "asarray",
    "compile",
    "device",
    "empty",
    "export_fd",
    "from_bus_address",
    "from_dlpack",
    "from_dma_buf",
    "host_operator",
    "ledger",
    "load",
    "no_copies",
    "set_device",
    "set_stream",
]

if sys.platform != "linux":
    raise ImportError(f"Landbridge runs on Linux, and this is {sys.platform}; see docs/supported-systems.md")

if TYPE_CHECKING:
    #: As it was installed; ``"0"`` in a source tree that never was.
    __version__: str

    from landbridge.compiler.api import compile
    from landbridge.device.api import Device, Stream
    from landbridge.device.fence import Fence
    from landbridge.device.registry import device
    from landbridge.device.stream import set_device, set_stream
    from landbridge.errors import (
        AccessError,
        BindError,
        BoardError,
        BudgetError,
        CodegenError,
        CompileError,
        ContextLostError,
        CopyForbiddenError,
        DeviceError,
        DeviceIndexError,
        DeviceLostError,
        DeviceNameTakenError,
        DeviceSuspendedError,
        DeviceTypeTakenError,
        DeviceVersionError,
        ExecutableError,
        FallbackWarning,
        ForkedDeviceError,
        HostAccessError,
        HostViewError,
        ImportModelError,
        IndexRangeError,
        InputError,
        JobTimeoutError,
        KernelBuildError,
        LandbridgeError,
        MissingFileError,
        ModelWarning,
        NodeError,
        NotPicklableError,
        OutOfMemoryError,
        OutputFileError,
        ParseError,
        PlacementError,
        PlanError,
        ResourceLimitError,
        RunTimeoutError,
        SanitizerError,
        ScatteredMemoryError,
        ScatteredMemoryWarning,
        ScheduleError,
        ScopeBusyError,
        SessionBusyError,
        ShapeError,
        SlowMemoryWarning,
        StateCapacityError,
        StorageError,
        StorageInUseError,
        TargetError,
        ThreadCountWarning,
        UndecidedSizeError,
        UnknownArgumentError,
        UnknownDeviceError,
        UnreadableFileError,
        UnsupportedError,
        UnsupportedOperatorError,
        UseAfterFreeError,
        VerifyError,
        ZeroCopyError,
    )
    from landbridge.executable.executable import Executable
    from landbridge.frontend.input_spec import InputSpec
    from landbridge.ir.limits import Limits
    from landbridge.loader import load
    from landbridge.memory.ledger import ledger, no_copies
    from landbridge.module import Module
    from landbridge.operators import host_operator
    from landbridge.session import Session
    from landbridge.session.pool import Pool
    from landbridge.session.state import State
    from landbridge.sizes.dim import Dim
    from landbridge.targets import Target
    from landbridge.tensor import Tensor, asarray, empty, export_fd, from_bus_address, from_dlpack, from_dma_buf

#: Where each public name is defined; all but these are in ``landbridge.errors``.
_MODULE_OF = {
    "Device": "landbridge.device.api",
    "Dim": "landbridge.sizes.dim",
    "Executable": "landbridge.executable.executable",
    "Fence": "landbridge.device.fence",
    "InputSpec": "landbridge.frontend.input_spec",
    "Limits": "landbridge.ir.limits",
    "Module": "landbridge.module",
    "Pool": "landbridge.session.pool",
    "Session": "landbridge.session",
    "State": "landbridge.session.state",
    "Stream": "landbridge.device.api",
    "Target": "landbridge.targets",
    "Tensor": "landbridge.tensor",
    "asarray": "landbridge.tensor",
    "compile": "landbridge.compiler.api",
    "empty": "landbridge.tensor",
    "export_fd": "landbridge.tensor",
    "from_bus_address": "landbridge.tensor",
    "from_dlpack": "landbridge.tensor",
    "from_dma_buf": "landbridge.tensor",
    "host_operator": "landbridge.operators",
    "ledger": "landbridge.memory.ledger",
    "load": "landbridge.loader",
    "no_copies": "landbridge.memory.ledger",
    "set_device": "landbridge.device.stream",
    "set_stream": "landbridge.device.stream",
}


#: Targets import no device; this lets them find one by name.
find_by(lambda name: import_module("landbridge.device.registry").device(name))


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        with collector_paused(), reports_exhaustion(f"{name} was imported"):
            value = getattr(import_module(_MODULE_OF[name]), name)
    elif name == "__version__":
        value = import_module("landbridge.package_version").package_version("landbridge")
    elif name == "device":
        # the package itself is callable: importing any part of it makes it an attribute here
        value = import_module("landbridge.device")
    elif name in __all__:
        value = getattr(import_module("landbridge.errors"), name)
    else:
        raise AttributeError(f"module 'landbridge' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
