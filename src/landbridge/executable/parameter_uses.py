"""What a Function does with its parameters: who reads the memory of each, and what is computed of it in advance."""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.executable import instructions as ins
from landbridge.executable.parts import Function
from landbridge.records import record


@record(frozen=True)
class ParameterCopy:
    """A copy of a parameter that runs read in its place: ``reader`` reads it as ``dtype`` of ``shape``, and ``step``
    makes it, a kernel that is executed when the parameter changes; or, with ``crosses``, a copy to other memory.
    """

    reader: str
    step: str
    dtype: str
    shape: tuple[int, ...]
    crosses: bool = False


@record(frozen=True)
class ParameterUse:
    """How the code of a program uses one parameter.

    ``copy`` is None where runs read the memory of the parameter itself; else the first copy that they read in its
    place. ``by_host``: whether code of the host reads that memory. ``vdevices``: those whose kernels read it.
    """

    copy: ParameterCopy | None
    by_host: bool
    vdevices: frozenset[int]


def parameter_uses(function: Function, on_devices: frozenset[int]) -> tuple[ParameterUse, ...]:
    """Returns the use of each parameter of ``function``, in order; devices run the modules ``on_devices``."""
    walk = _Walk(function, on_devices)
    kinds = [type(instruction) for instruction in function.instructions]
    end = kinds.index(ins.Prepared) if ins.Prepared in kinds else 0
    walk.preparation(function.instructions[:end])
    walk.runs(function.instructions[end:])
    return tuple(map(walk.use, range(len(function.parameters))))


class _Walk:
    def __init__(self, function: Function, on_devices: frozenset[int]) -> None:
        first = len(function.inputs) + len(function.outputs)
        self._on_devices = on_devices
        #: The parameter whose bytes a register is.
        self._parameter = {first + number: number for number in range(len(function.parameters))}
        #: The parameters that a register was computed of in advance.
        self._computed: dict[int, frozenset[int]] = {}
        self._tensors: dict[int, ins.AllocTensor] = {}
        self._steps: dict[int, ins.Instruction] = {}
        self._readers: dict[int, tuple[str, int]] = {}
        self._crossings: dict[int, ins.ToVDevice] = {}
        self._by_host: set[int] = set()
        self._vdevices: dict[int, set[int]] = {}

    def preparation(self, instructions: Sequence[ins.Instruction]) -> None:
        """Note what ``instructions``, which come before ``Prepared``, read and compute."""
        for instruction in instructions:
            if self._define(instruction):
                continue
            args = _operands(instruction)
            direct = {self._parameter[arg] for arg in args if arg in self._parameter}
            of = direct.union(*(self._computed.get(arg, ()) for arg in args))
            for number in direct:
                self._steps.setdefault(number, instruction)
            for arg in args:
                if of and arg in self._tensors:
                    self._computed[arg] = self._computed.get(arg, frozenset()) | of

    def runs(self, instructions: Sequence[ins.Instruction]) -> None:
        """Note what ``instructions``, which each run executes, read."""
        for instruction in ins.flattened(instructions):
            if isinstance(instruction, ins.Loop):
                for each in instruction.slices:
                    self._same_bytes(each.dst, each.src)
            if self._define(instruction):
                continue
            for arg in _operands(instruction):
                for number in self._computed.get(arg, ()):
                    self._readers.setdefault(number, (_name(instruction), arg))
                if (direct := self._parameter.get(arg)) is not None:
                    self._read(direct, instruction)

    def use(self, number: int) -> ParameterUse:
        """Returns the use of parameter ``number``."""
        return ParameterUse(self._copy(number), number in self._by_host, frozenset(self._vdevices.get(number, ())))

    def _copy(self, number: int) -> ParameterCopy | None:
        step = self._steps.get(number) or self._crossings.get(number)
        if step is None:
            return None
        reader, register = self._readers.get(number, ("a later step", -1))
        if register < 0 and isinstance(step, ins.ToVDevice):
            register = step.dst
        tensor = self._tensors.get(register)
        dtype, shape = ("uint8", ()) if tensor is None else (tensor.dtype, tensor.shape)
        return ParameterCopy(reader, _name(step), dtype, shape, isinstance(step, ins.ToVDevice))

    def _define(self, instruction: ins.Instruction) -> bool:
        """Returns whether ``instruction`` only defines a register, and notes what that is."""
        if isinstance(instruction, ins.AllocTensor):
            self._tensors[instruction.dst] = instruction
        elif isinstance(instruction, ins.View):
            self._same_bytes(instruction.dst, instruction.src)
        return isinstance(instruction, ins.AllocTensor | ins.View | ins.AllocStorage | ins.LoadConstant)

    def _same_bytes(self, dst: int, src: int) -> None:
        if src in self._parameter:
            self._parameter[dst] = self._parameter[src]
        if src in self._computed:
            self._computed[dst] = self._computed[src]
        if src in self._tensors:
            self._tensors[dst] = self._tensors[src]

    def _read(self, number: int, instruction: ins.Instruction) -> None:
        if isinstance(instruction, ins.Call) and instruction.module in self._on_devices:
            self._vdevices.setdefault(number, set()).add(instruction.vdevice)
            return
        if isinstance(instruction, ins.ToVDevice):
            self._crossings.setdefault(number, instruction)
        self._by_host.add(number)


def _operands(instruction: ins.Instruction) -> tuple[int, ...]:
    """Returns the registers that ``instruction`` reads or writes, without those of what it contains."""
    match instruction:
        case ins.Call(args=args) | ins.HostCall(args=args):
            return args
        case ins.ToVDevice(src, dst):
            return src, dst
        case ins.If(condition):
            return (condition,)
        case ins.Loop(count=count, condition=condition):
            return (*count, *condition)
        case _:
            return ()


def _name(instruction: ins.Instruction) -> str:
    match instruction:
        case ins.Call(function=function, name=name):
            return name or function
        case ins.HostCall(builtin):
            return builtin
        case ins.ToVDevice(name=name):
            return name or "to_vdevice"
        case _:
            return type(instruction).__name__.lower()
