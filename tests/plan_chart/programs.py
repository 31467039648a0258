"""A small hand-made program with every way to touch memory: parts, an update in place, views, branches, rows."""

from __future__ import annotations

from landbridge.executable.executable import Executable
from landbridge.executable.instructions import (
    AllocStorage,
    AllocTensor,
    Call,
    HostCall,
    If,
    Instruction,
    LoadConstant,
    ToVDevice,
    View,
)
from landbridge.executable.parts import CodeImage, Function, ModuleImage, StorageReport, TensorSpec, VDevice
from landbridge.memory_kind import MemoryKind
from landbridge.targets import Target

#: Registers: 0 input, 1 output, 2 and 3 storages, 4 "joined", 5 and 6 its halves, 7 "flag", 8 "rows", 9 a constant.
PROGRAM: tuple[Instruction, ...] = (
    AllocStorage(2, 1024, 0, 64),
    AllocStorage(3, 64, 1, 64, shape=(4, 16)),
    AllocTensor(4, 2, 64, (2, 64), "float32", "concat"),
    View(5, 4, 0, (1, 64), "float32"),
    View(6, 4, 256, (1, 64), "float32"),
    AllocTensor(7, 2, 0, (), "bool", "flag"),
    AllocTensor(8, 3, 16, (2, 1, 16), "uint8", "concat", axis_separators=(2,)),
    LoadConstant(9, "w", 0),
    Call(0, "conv_add_relu_3", (0, 9, 5), 1, "left"),  # step 0
    Call(0, "pack_4", (0, 6), 1, "right", moves_bytes=256),  # 1
    Call(0, "add_5", (4, 0, 4), 1, "update"),  # 2: in place
    HostCall("NonZero", (4, 7), {}),  # 3
    If(  # 4
        7,
        then=(ToVDevice(4, 8, "there"),),  # 5
        orelse=(Call(0, "max_pool_9", (4, 8), 1),),  # 6
    ),
    Call(0, "sigmoid_7", (8, 1), 1, "last"),  # 7
)


def program() -> Executable:
    """PROGRAM on a vdevice with ordinary memory and a scratchpad of rows."""
    memory = [
        MemoryKind(scope="global", host_access="read_write", coherent=True, capacity=4096),
        MemoryKind(scope="global.rows", host_access="none", coherent=True, ndim=2, row_alignment=16),
    ]
    target = Target({"kind": "c", "memory": memory})
    x = TensorSpec("x", (64,), "float32")
    return Executable(
        functions={"main": Function("main", (x,), (TensorSpec("y", (32,), "uint8"),), PROGRAM)},
        vdevices=(VDevice("cpu", 0), VDevice("cpu", 0, "global.rows")),
        modules=(ModuleImage(target.to_json(), CodeImage("x86_64", b"", {})),),
        constants={},
        memory=(
            StorageReport("cpu", "global", 1024, 577, False),
            StorageReport("cpu", "global.rows", 64, 32, False),
        ),
    )
