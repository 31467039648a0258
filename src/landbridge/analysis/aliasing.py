"""Alias analysis: decides which outputs of a memory-level @main may be the memory of an input.

An output may be written onto an input when no operation reads the input after the first one that writes the output. The
operation that does both must be a kernel that reads each element where it writes it (``analysis/overwriting.py``). That
holds on a grid of workgroups too: the work-item that reads an element is the one that writes it. Kernels on different
devices are ordered by the memory that they touch, of which an alias is one (``vm/touches.py``). Memory in rows and
images are for one tensor each, and a state that is copied to another device does not stay in place.
"""

from __future__ import annotations

from xdsl.dialects import memref
from xdsl.ir import Operation, SSAValue

from landbridge.analysis.lifetimes import root, steps
from landbridge.analysis.offsets import has_one_tensor_per_space
from landbridge.analysis.overwriting import overwritable
from landbridge.ir.graph_ops import CallOp, HostCallOp, ToVDeviceOp, ViewOp
from landbridge.ir.main_attributes import frame_layouts, input_elements, io_names, node_types
from landbridge.ir.module import IRModule
from landbridge.ir.op_attributes import declared_vdevice, node_name
from landbridge.ir.types import dtype_of, element_count, shape_of
from landbridge.memory_kind import GLOBAL_SCOPE
from landbridge.records import record

#: What helps whatever the reason is.
_OR_NO_ALIAS = "or request no alias: two buffers then swap"


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
        self._types = node_types(main)
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
            first = self.first_writer(output)
            by = "" if first is None else f", by {self._named(first)},"
            return (
                f"the one is {_shown(target)}{by} and the other {_shown(source)}; legal: equal shapes and dtypes, "
                "which shapes= and dims= can state, and a Concat of the input and what is new, in this order"
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
            return (
                f"{self._named(reader)} reads {input!r} after {self._named(op)} has begun to write {output!r}; let it "
                f"read {output!r}, or what is computed of {input!r} before, {_OR_NO_ALIAS}"
            )
        if first is not op or not isinstance(op, CallOp) or last is not reader:
            return (
                f"{self._named(first)} writes {output!r} while it reads {input!r}; legal: a kernel by itself, "
                f"{_OR_NO_ALIAS}"
            )
        return self._in_one_kernel(op, source, target, input, output)

    def _in_one_kernel(self, op: CallOp, source: SSAValue, target: SSAValue, input: str, output: str) -> Shared | str:
        vdevice = declared_vdevice(op)
        if vdevice is not None and has_one_tensor_per_space(self._module, vdevice):
            return (
                f"{self._named(op)} would read and write one space of {self._module.vdevices[vdevice.index.data]}, "
                f"whose launches take no space twice; {_OR_NO_ALIAS}"
            )
        pairs = overwritable(self._module.prims()[op.callee_name], len(op.destinations))
        reads = [number for number, value in enumerate(op.inputs) if root(value) is source]
        writes = [number for number, value in enumerate(op.destinations) if root(value) is target]
        whole = all(
            _is_whole(value) for value in (*(op.inputs[n] for n in reads), *(op.destinations[n] for n in writes))
        )
        if len(reads) != 1 or len(writes) != 1 or not whole or (reads[0], writes[0]) not in pairs:
            return (
                f"{self._named(op)} reads elements of {input!r} elsewhere than where it writes {output!r}; legal: an "
                "elementwise operator, ScatterND, ScatterElements, TensorScatter or a Concat of the input and what is "
                f"new, {_OR_NO_ALIAS}"
            )
        return Shared(op)

    def _named(self, op: Operation) -> str:
        """Returns the name and operator of the model's node, or nodes, that ``op`` is part of."""
        name = node_name(op)
        kinds = [self._types[each] for each in name.split("+") if each in self._types]
        if not name:
            return f"a {op.name.removeprefix('lb.')}"
        return f"node {name!r}" + f" ({'+'.join(kinds)})" * bool(kinds)

    def _elsewhere(self, op: Operation) -> str:
        """Returns why ``op`` does not use the memory of the state itself, or not as flat memory; empty if it does."""
        if isinstance(op, memref.CopyOp):
            return f"{self._named(op)} copies it to another device"
        vdevice = declared_vdevice(op) if isinstance(op, CallOp | HostCallOp) else None
        if vdevice is None or vdevice.scope.data == GLOBAL_SCOPE:
            return ""
        device = self._module.vdevices[vdevice.index.data]
        return f"{self._named(op)} runs on {device}; legal: kernels in memory of scope {GLOBAL_SCOPE!r}"


def _is_whole(value: SSAValue) -> bool:
    """Returns whether ``value`` is all elements of its buffer, which a crossing that is a view does not change."""
    count, buffer = element_count(shape_of(value.type)), value
    while isinstance(buffer.owner, ViewOp | ToVDeviceOp):
        if isinstance(buffer.owner, ViewOp) and buffer.owner.first != 0:
            return False
        buffer = buffer.owner.source
    return buffer is root(value) and count == element_count(shape_of(buffer.type))


def _shown(value: SSAValue) -> str:
    return f"{dtype_of(value.type)}[{', '.join(map(str, shape_of(value.type)))}]"
