"""Instructions of a compiled function: frozen facts over numbered registers, no behaviour.

Register numbering in a Function: inputs first (``0 .. n_inputs-1``), then outputs (``n_inputs ..``; the
caller's destination buffers), then parameters (weights that may be replaced), then whatever the instructions
define. A register holds a tensor's place: an address range on one device.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AllocStorage:
    """``dst`` = ``nbytes`` of memory of ``vdevice``; alive for the Session (static plan)."""

    dst: int
    nbytes: int
    vdevice: int
    alignment: int


@dataclass(frozen=True)
class AllocTensor:
    """``dst`` = the tensor at byte ``offset`` of ``storage``."""

    dst: int
    storage: int
    offset: int
    shape: tuple[int, ...]
    dtype: str
    name: str = ""


@dataclass(frozen=True)
class LoadConstant:
    """``dst`` = the constant called ``name`` of the Executable, on ``vdevice``."""

    dst: int
    name: str
    vdevice: int


@dataclass(frozen=True)
class View:
    """``dst`` = the bytes of ``src`` from byte ``offset``, as another shape; no bytes move."""

    dst: int
    src: int
    offset: int
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Call:
    """Run ``function`` of module ``module`` on ``args`` (inputs, then destinations).

    ``moves_bytes`` is not 0 for a kernel that only moves data: the bytes it writes, for the ledger.
    """

    module: int
    function: str
    args: tuple[int, ...]
    tasks: int
    name: str = ""
    moves_bytes: int = 0


@dataclass(frozen=True)
class HostCall:
    """Run the host builtin ``builtin`` (see ``landbridge.vm.builtins``) on ``args``."""

    builtin: str
    args: tuple[int, ...]
    attributes: dict[str, object]


@dataclass(frozen=True)
class ToVDevice:
    """Copy ``src`` to ``dst``, which is memory of another vdevice."""

    src: int
    dst: int
    name: str = ""


@dataclass(frozen=True)
class If:
    """Run ``then`` when the first byte of register ``condition`` is not 0, else ``orelse``."""

    condition: int
    then: tuple[Instruction, ...]
    orelse: tuple[Instruction, ...]


@dataclass(frozen=True)
class Kill:
    """``register`` is not used after this point."""

    register: int


Instruction = AllocStorage | AllocTensor | LoadConstant | View | Call | HostCall | ToVDevice | If | Kill
