"""Touches: the bytes that each instruction touches, and the device that runs it, from which overlap is computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from landbridge.device.api import Device
from landbridge.executable import instructions as ins
from landbridge.tensor import Tensor
from landbridge.tensor.copy import host_sees
from landbridge.vm.borrowed_memory import granules
from landbridge.vm.dependences import Touch
from landbridge.vm.owned_memory import FlatMemory, RowMemory
from landbridge.vm.registers import Memory, RegisterLocation, Registers


class Touches:
    """The touched bytes of instructions on ``registers``; devices run calls of modules ``on_devices``.

    ``outputs``: the numbers of the bound registers that the program writes. ``aliases``: the register of the input
    whose memory an output may be, by the register of the output; the two count as one memory.
    """

    def __init__(
        self,
        registers: Registers,
        memory: Memory,
        on_devices: frozenset[int],
        outputs: range,
        aliases: Mapping[int, int],
    ) -> None:
        self._registers, self._memory, self._on_devices, self._outputs = registers, memory, on_devices, outputs
        self._aliases = aliases

    def where(self, instruction: ins.Instruction) -> tuple[Device | None, list[Touch] | None]:
        """Returns the device of ``instruction``, None for the host, and what it touches, None for anything."""
        match instruction:
            case ins.Call(module, _, args):
                on = module in self._on_devices
                return self._memory.binding(instruction.vdevice).device if on else None, self.of(args)
            case ins.ToVDevice(src, dst):
                return self.engine(self._registers[src], self._registers[dst]), self.of((src, dst), reads=(src,))
            case ins.HostCall(name, args, attributes) if _is_host_operator(name):
                count = attributes.get("inputs", 0)
                return None, self.of(args, reads=args[:count] if isinstance(count, int) else ())
            case ins.HostCall() | ins.If() | ins.Loop() | ins.Prepared():
                return None, None
            case _:
                return None, []

    def of(self, registers: Sequence[int], reads: Sequence[int] = ()) -> list[Touch]:
        """Returns what an instruction touches; any operand of a call may be written, except memory that nobody
        writes.
        """
        touched = []
        for register in registers:
            location = self._registers[register]
            memory = location.owned if location.io is None else self._aliases.get(location.io, location.io)
            writes = self.may_write(location) and register not in reads
            if isinstance(location.owned, RowMemory):
                touched.append(Touch(memory, 0, location.owned.nbytes, writes))
            else:  # whole granules: a barrier for some bytes of one affects all of them
                granule = self._memory.binding(location.vdevice).kind.coherence_granule
                touched.append(Touch(memory, *granules(location, granule), writes))
        return touched

    def engine(self, source: RegisterLocation, destination: RegisterLocation) -> Device | None:
        """Returns the device whose queue copies between its own memory, hidden from the host, and the host's.

        None for other copies: they are done when their step is.
        """
        ends = self._end_tensor(source), self._end_tensor(destination)
        match ends:
            case (Tensor() as owned, None) if destination.address is not None and not host_sees(owned, "r"):
                return owned.device
            case (None, Tensor() as owned) if source.address is not None and not host_sees(owned, "w"):
                return owned.device
        return None

    def _end_tensor(self, location: RegisterLocation) -> Tensor | None:
        """Returns the program's own device memory at ``location``; None for host memory and what is bound."""
        owned = location.owned
        return owned.tensor if isinstance(owned, FlatMemory) and owned.address is None else None

    def may_write(self, location: RegisterLocation) -> bool:
        """Returns whether code may write ``location``: any operand of a call, except memory that nobody writes."""
        return location.io is None or location.io in self._outputs


def _is_host_operator(name: str) -> bool:
    """Returns whether a program calls a host operator by ``name``: a function that uses its arguments alone."""
    from landbridge.operators.implementations import HOST_PREFIX  # few programs call any

    return name.startswith(HOST_PREFIX)
