"""What each instruction touches, and which device does it: what overlapping steps are found from."""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.device.api import Device
from landbridge.executable import instructions as ins
from landbridge.tensor import Tensor
from landbridge.tensor.copy import host_sees
from landbridge.vm.borrowed_memory import granules
from landbridge.vm.overlap import Touch
from landbridge.vm.owned_memory import FlatMemory, RowMemory
from landbridge.vm.registers import Memory, RegisterLocation, Registers


class Touches:
    """Of instructions on ``registers``; calls of modules ``on_devices`` are done by the device of their vdevice.

    ``outputs``: the numbers of the places that the program writes, of those that are bound.
    """

    def __init__(self, registers: Registers, memory: Memory, on_devices: frozenset[int], outputs: range) -> None:
        self._registers, self._memory, self._on_devices, self._outputs = registers, memory, on_devices, outputs

    def where(self, instruction: ins.Instruction) -> tuple[Device | None, list[Touch] | None]:
        """The device that does ``instruction``, None for the host, and what it touches, None for anything."""
        match instruction:
            case ins.Call(module, _, args):
                on = module in self._on_devices
                return self._memory.binding(instruction.vdevice).device if on else None, self.of(args)
            case ins.ToVDevice(src, dst):
                return self.engine(self._registers[src], self._registers[dst]), self.of((src, dst), reads=(src,))
            case ins.HostCall() | ins.If() | ins.Loop() | ins.Prepared():
                return None, None
            case _:
                return None, []

    def of(self, registers: Sequence[int], reads: Sequence[int] = ()) -> list[Touch]:
        """What an instruction touches; which operands of a call it writes is not known, but for what nobody writes."""
        touched = []
        for register in registers:
            location = self._registers[register]
            memory = id(location.owned) if location.io is None else ("io", location.io)
            writes = self.may_write(location) and register not in reads
            if isinstance(location.owned, RowMemory):
                touched.append(Touch(memory, 0, location.owned.nbytes, writes))
            else:  # whole granules: barriers for some bytes of one reach all of them
                granule = self._memory.binding(location.vdevice).kind.coherence_granule
                touched.append(Touch(memory, *granules(location, granule), writes))
        return touched

    def engine(self, source: RegisterLocation, destination: RegisterLocation) -> Device | None:
        """The device whose queue does a copy between memory of its own, hidden from the host, and the host's.

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
        """The program's own memory of a device at ``location``; None for the host's and what is bound."""
        owned = location.owned
        return owned.tensor if isinstance(owned, FlatMemory) and owned.address is None else None

    def may_write(self, location: RegisterLocation) -> bool:
        """Whether code may write it: which operands of a call it does is not known, but for what nobody writes."""
        return location.io is None or location.io in self._outputs
