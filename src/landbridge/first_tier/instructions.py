"""Makes instructions of the calls of a program: registers, planned memory, constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from landbridge.array_type import Array
from landbridge.executable.instructions import (
    AllocStorage,
    AllocTensor,
    HostCall,
    Instruction,
    LoadConstant,
    View,
)
from landbridge.first_tier.call_builder import KernelCall, ShapedValue
from landbridge.numpy_kernels.registry import PREFIX
from landbridge.planner.buffers import Buffer
from landbridge.planner.greedy import Fit, peak
from landbridge.planner.lower_bound import lower_bound
from landbridge.planner.sweep import sweep
from landbridge.records import record

_ALIGNMENT = 64


@record(frozen=True, eq=False)
class Linked:
    """The instructions of ``@main``, the constants that they load, and the plan of their memory, in bytes."""

    instructions: tuple[Instruction, ...]
    constants: Mapping[str, Array]
    planned_bytes: int
    lower_bound_bytes: int
    is_optimal: bool


def link(
    calls: Sequence[KernelCall],
    inputs: Sequence[ShapedValue],
    outputs: Sequence[ShapedValue],
    names: Mapping[ShapedValue, str],
) -> Linked:
    """Returns the program of ``calls``, in their order; ``names`` are those of constants that have one."""
    return _Linker(calls, inputs, outputs, names).linked()


class _Linker:
    def __init__(
        self,
        calls: Sequence[KernelCall],
        inputs: Sequence[ShapedValue],
        outputs: Sequence[ShapedValue],
        names: Mapping[ShapedValue, str],
    ) -> None:
        self._calls, self._names = calls, names
        self._outputs = outputs
        self._registers: dict[ShapedValue, int] = {value: number for number, value in enumerate(inputs)}
        self._first_output = len(inputs)
        self._next = len(inputs) + len(outputs)
        self._instructions: list[Instruction] = []
        self._constants: dict[str, Array] = {}
        #: The number of the output whose memory a value has; the others are copied there at the end.
        self._direct = self._written_directly(set(inputs))

    def linked(self) -> Linked:
        offsets, planned, bound = self._plan()
        storage = self._new()
        if offsets:
            self._instructions.append(AllocStorage(storage, planned, 0, _ALIGNMENT))
        for value, number in self._direct.items():
            register = self._registers[value] = self._new()
            self._instructions.append(View(register, self._first_output + number, 0, value.shape, value.dtype))
        for call in self._calls:
            for value in call.results:
                if value not in self._registers:
                    register = self._registers[value] = self._new()
                    tensor = AllocTensor(register, storage, offsets[value], value.shape, value.dtype, call.node)
                    self._instructions.append(tensor)
            self._host_call(call.kernel, call.operands, call.results, call.attributes, call.node)
        for number, value in enumerate(self._outputs):
            if self._direct.get(value.root) != number:
                args = (self._register(value), self._first_output + number)
                attributes: dict[str, object] = {"attributes": {}, "absent": [], "node": "output"}
                self._instructions.append(HostCall(f"{PREFIX}Copy", args, attributes))
        return Linked(tuple(self._instructions), self._constants, planned, bound, planned == bound)

    def _host_call(
        self,
        kernel: str,
        operands: Sequence[ShapedValue | None],
        results: Sequence[ShapedValue],
        attributes: Mapping[str, object],
        node: str,
    ) -> None:
        given = [self._register(value) for value in operands if value is not None]
        args = (*given, *(self._registers[value] for value in results))
        absent = [number for number, value in enumerate(operands) if value is None]
        options: dict[str, object] = {"attributes": dict(attributes), "absent": absent, "node": node}
        self._instructions.append(HostCall(PREFIX + kernel, args, options))

    def _new(self) -> int:
        self._next += 1
        return self._next - 1

    def _register(self, value: ShapedValue) -> int:
        """Returns the register of ``value``; a view or constant gets one when it is first read."""
        register = self._registers.get(value)
        if register is None:
            source = self._load(value) if value.constant is not None else self._registers[value.root]
            register = self._registers[value] = self._new()
            self._instructions.append(View(register, source, 0, value.shape, value.dtype))
        return register

    def _load(self, value: ShapedValue) -> int:
        assert value.constant is not None
        name = self._names.get(value) or f"computed:{len(self._constants)}"
        self._constants[name] = value.constant
        register = self._new()
        self._instructions.append(LoadConstant(register, name, 0))
        return register

    def _written_directly(self, inputs: set[ShapedValue]) -> dict[ShapedValue, int]:
        """Returns the values that kernels write into the memory of an output, with its number, each once."""
        found: dict[ShapedValue, int] = {}
        for number, value in enumerate(self._outputs):
            if value.constant is None and value.root not in inputs:
                found.setdefault(value.root, number)
        return found

    def _plan(self) -> tuple[dict[ShapedValue, int], int, int]:
        """Returns the offset of each value in the storage, the bytes of the storage, and their lower bound.

        A result takes the memory of an operand that nobody reads later, where the kernel allows it.
        """
        last = {value.root: time for time, call in enumerate(self._calls) for value in call.operands if value}
        begins: dict[ShapedValue, int] = {}
        ends: dict[ShapedValue, int] = {}
        shared: dict[ShapedValue, ShapedValue] = {}
        for time, call in enumerate(self._calls):
            for value in call.results:
                if value in self._direct:
                    continue
                owner = self._overwritten(call, value, time, last) if value is call.results[0] else None
                if owner is not None and owner in begins | shared:
                    owner = shared[value] = shared.get(owner, owner)
                else:
                    begins[value] = time
                    owner = value
                ends[owner] = max(ends.get(owner, 0), last.get(value, time) + 1, time + 1)
        buffers = [Buffer(n, v.nbytes, _ALIGNMENT, begin, ends[v]) for n, (v, begin) in enumerate(begins.items())]
        placed = sweep(buffers, Fit.BEST)
        offsets = dict(zip(begins, placed, strict=True))
        offsets |= {value: offsets[owner] for value, owner in shared.items()}
        return offsets, peak(buffers, placed), lower_bound(buffers)

    def _overwritten(
        self, call: KernelCall, value: ShapedValue, time: int, last: Mapping[ShapedValue, int]
    ) -> ShapedValue | None:
        """Returns the root of the operand whose memory ``value`` may take; None where it may not.

        Another operand with the same memory may be read after the result has been begun.
        """
        operand = call.operands[0] if call.overwrites else None
        if operand is None or operand.constant is not None or last[operand.root] > time:
            return None
        others = [each.root for each in call.operands[1:] if each is not None]
        if (operand.shape, operand.dtype) != (value.shape, value.dtype) or operand.root in others:
            return None
        return operand.root
