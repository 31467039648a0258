"""Alias analysis: decides which outputs of a memory-level @main may be the memory of an input.

An output may be written onto an input when no operation reads the input after the first one that writes the output. The
operation that does both must be a kernel that reads each element where it writes it (``analysis/overwriting.py``). All
of them must run on the host's CPU, one after the other: devices order their work by memory, and to a device two
arguments are two memories.
"""

from __future__ import annotations

from xdsl.dialects import memref
from xdsl.ir import Operation, SSAValue

from landbridge.analysis.lifetimes import beginning, root, steps
from landbridge.analysis.overwriting import overwritable
from landbridge.ir.graph_ops import CallOp, HostCallOp
from landbridge.ir.main_attributes import frame_layouts, input_elements, io_names
from landbridge.ir.module import IRModule
from landbridge.ir.op_attributes import declared_vdevice, node_name
from landbridge.ir.types import dtype_of, element_count, shape_of
from landbridge.memory_kind import GLOBAL_SCOPE
from landbridge.records import record
from landbridge.targets.grid import grid_limits


@record(frozen=True)
class Shared:
    """The proof that an output may alias an input: ``call`` reads the input where it writes the output, if any call
    does."""

    call: CallOp | None


class Aliasing:
    """The arguments of @main of ``module``, with the operations that use their memory."""

    def __init__(self, module: IRModule) -> None:
        self._module = module
        main = module.main
        block = main.body.block
        names = io_names(main)
        self.inputs = dict(zip(names[0], block.args, strict=False))
        self.outputs = dict(zip(names[1], block.args[len(names[0]) :], strict=True))
        self._fixed = {*frame_layouts(main), *input_elements(main), *module.parameters}
        self._order = {op: number for number, op in enumerate(block.ops)}
        self._touched: dict[SSAValue, list[tuple[Operation, Operation]]] = {}
        for op, values in steps(block):
            top = block.find_ancestor_op_in_block(op)
            assert top is not None  # steps are operations of this block, or inside of one
            for value in dict.fromkeys(map(root, values)):
                self._touched.setdefault(value, []).append((top, op))

    def first_writer(self, output: str) -> Operation | None:
        """Returns the first operation that uses the memory of ``output``."""
        touched = self._touched.get(self.outputs[output])
        return touched[0][1] if touched else None

    def reads_whole(self, op: CallOp, input: str) -> bool:
        """Returns whether ``op`` reads all of ``input`` and nothing else."""
        return len(op.inputs) == 1 and root(op.inputs[0]) is self.inputs[input] and _is_whole(op.inputs[0])

    def shared(self, output: str, input: str) -> Shared | str:
        """Returns how ``output`` may alias ``input``, or a text that says why it may not."""
        source, target = self.inputs[input], self.outputs[output]
        if source.type != target.type:
            return (
                f"the one is {_shown(target)} and the other {_shown(source)}; legal: equal shapes and dtypes, "
                "which shapes= and dims= can state"
            )
        if input in self._fixed:
            return f"{input!r} is a frame, a weight, or says what dimensions are"
        read, written = self._touched.get(source, []), self._touched.get(target, [])
        for _, op in (*read, *written):
            if why := self._elsewhere(op):
                return why
        if not read or not written:
            return Shared(None)
        first, op = written[0]
        last, reader = read[-1]
        if self._order[last] < self._order[first]:
            return Shared(None)
        if self._order[last] > self._order[first]:
            return f"{_named(reader)} reads {input!r} after {_named(op)} has begun to write {output!r}"
        if first is not op or not isinstance(op, CallOp) or last is not reader:
            return f"{_named(first)} writes {output!r} while it reads {input!r}; legal: a kernel by itself"
        return self._in_one_kernel(op, source, target, input, output)

    def _in_one_kernel(self, op: CallOp, source: SSAValue, target: SSAValue, input: str, output: str) -> Shared | str:
        pairs = overwritable(self._module.prims()[op.callee_name], len(op.destinations))
        reads = [number for number, value in enumerate(op.inputs) if root(value) is source]
        writes = [number for number, value in enumerate(op.destinations) if root(value) is target]
        whole = all(
            _is_whole(value) for value in (*(op.inputs[n] for n in reads), *(op.destinations[n] for n in writes))
        )
        if len(reads) != 1 or len(writes) != 1 or not whole or (reads[0], writes[0]) not in pairs:
            return f"{_named(op)} reads elements of {input!r} elsewhere than where it writes {output!r}"
        return Shared(op)

    def _elsewhere(self, op: Operation) -> str:
        """Returns why ``op`` does not run in the order of the host's CPU; empty if it does."""
        if isinstance(op, memref.CopyOp):
            return f"{_named(op)} copies it to another device"
        vdevice = declared_vdevice(op) if isinstance(op, CallOp | HostCallOp) else None
        if vdevice is None:
            return ""
        device = self._module.vdevices[vdevice.index.data]
        if vdevice.scope.data != GLOBAL_SCOPE or grid_limits(self._module.target_of(vdevice.index.data)) is not None:
            return f"{_named(op)} runs on {device}; legal: kernels of a CPU"
        return ""


def _is_whole(value: SSAValue) -> bool:
    """Returns whether ``value`` is all elements of its buffer."""
    buffer, first = beginning(value)
    counts = [element_count(shape_of(each.type)) for each in (value, buffer)]
    return first == 0 and buffer is root(value) and counts[0] == counts[1]


def _shown(value: SSAValue) -> str:
    return f"{dtype_of(value.type)}[{', '.join(map(str, shape_of(value.type)))}]"


def _named(op: Operation) -> str:
    name = node_name(op)
    return f"node {name!r}" if name else f"a {op.name.removeprefix('lb.')}"
