"""Instruments CPU kernels to check accesses: each gets a report operand, which the host reads after each call.

``lower`` then makes kernels that test every index, skip accesses outside of an operand, and record them in the report
(``landbridge.executable.access_report``). The pass comes last, on a plan; it is no part of an ordinary compile.
"""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, StringAttr
from xdsl.ir import Attribute, Block, BlockArgument, SSAValue
from xdsl.rewriter import Rewriter

from landbridge.executable.abi import STORAGE_ALIGNMENT
from landbridge.executable.access_report import ACCESS_CHECK, CLEAR_REPORT, report_words
from landbridge.ir.graph_ops import CallOp, ConstantOp, HostCallOp, viewed
from landbridge.ir.kernel_attributes import is_checked, mark_checked, target_number
from landbridge.ir.main_attributes import io_names
from landbridge.ir.memory_ops import AllocStorageOp, AllocTensorOp
from landbridge.ir.module import IRModule
from landbridge.ir.op_attributes import declared_vdevice, node_name, set_plan_quality
from landbridge.ir.plain_attributes import int_array, int_attr
from landbridge.ir.traversal import operations_of
from landbridge.ir.types import VDeviceAttr, item_bytes, memref_type, nbytes_of
from landbridge.passes.registry import register_pass
from landbridge.sizes.size import Extent, Size

_WORD = 8  # bytes


@register_pass("check_accesses")
def check_accesses(module: IRModule) -> None:
    """Let CPU kernels test every index, and the host raise SanitizerError for one outside of an operand."""
    prims = {
        name: prim
        for name, prim in module.prims().items()
        if module.targets[target_number(prim)].on_host and not is_checked(prim)
    }
    calls = [op for op in operations_of(module.main, CallOp) if op.callee_name in prims]
    reports = _Reports(module.main.body.block)
    names = io_names(module.main)
    for call in calls:
        _check(call, reports.of(call), dict(zip(module.main.body.block.args, (*names[0], *names[1]), strict=True)))
    for prim in prims.values():
        _add_report(prim)


class _Reports:
    """Allocates report memory: one storage for each vdevice that makes calls, which its kernels share."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._created: dict[tuple[VDeviceAttr, int], SSAValue] = {}

    def of(self, call: CallOp) -> SSAValue:
        """Returns the report of ``call``, which is zero when @main begins."""
        caller = declared_vdevice(call)
        vdevice = VDeviceAttr.of(0 if caller is None else caller.index.data)
        words = report_words(len(call.operands))
        if (vdevice, words) not in self._created:
            storage = AllocStorageOp(words * _WORD, STORAGE_ALIGNMENT, vdevice)
            set_plan_quality(storage, words * _WORD, proved_optimal=True)
            report = AllocTensorOp(storage.result, 0, memref_type((words,), "int64"), "access report")
            clear = _host_call(CLEAR_REPORT, report.result, {})
            first = self._block.first_op
            assert first is not None  # the call
            self._block.insert_ops_before([storage, report, clear], first)
            self._created[vdevice, words] = report.result
        return self._created[vdevice, words]


def _check(call: CallOp, report: SSAValue, names: dict[SSAValue, str]) -> None:
    """Give ``call`` its report operand, and let the host read it afterwards."""
    operands = [*call.inputs, *call.destinations]
    facts: dict[str, Attribute] = {
        "node": StringAttr(node_name(call)),
        "kernel": StringAttr(call.callee_name),
        "names": ArrayAttr([StringAttr(_named(v, names)) for v in operands]),
        "items": int_array([item_bytes(v.type) for v in operands]),
        "nbytes": ArrayAttr([_declared(nbytes_of(v.type)) for v in operands]),
    }
    checked = CallOp(call.callee_name, list(call.inputs), [*call.destinations, report], [])
    checked.attributes = call.attributes | checked.attributes
    Rewriter.replace_op(call, [checked, _host_call(ACCESS_CHECK, report, facts)], [])


def _declared(nbytes: Extent) -> Attribute:
    """Returns bytes as an attribute for messages; an open size becomes its text."""
    return StringAttr(str(nbytes)) if isinstance(nbytes, Size) else int_attr(nbytes)


def _host_call(builtin: str, report: SSAValue, parameters: dict[str, Attribute]) -> HostCallOp:
    return HostCallOp.build(
        operands=[[], [report]],
        result_types=[[]],
        attributes={"builtin": StringAttr(builtin), "parameters": DictionaryAttr(parameters)},
    )


def _named(value: SSAValue, names: dict[SSAValue, str]) -> str:
    """Returns the name of the buffer ``value`` for messages."""
    source = viewed(value)
    if isinstance(source, BlockArgument):
        return f"argument {names[source]!r}" if source in names else "a value of a branch"
    if isinstance(source.owner, ConstantOp):
        return f"constant {source.owner.symbol_name!r}"
    node = node_name(source.owner) if isinstance(source.owner, AllocTensorOp) else ""
    return f"the result of {node!r}" if node else "a tensor of the model"


def _add_report(prim: func.FuncOp) -> None:
    """Make the report the last operand of ``prim``."""
    block = prim.body.block
    block.insert_arg(memref_type((report_words(len(block.args)),), "int64"), len(block.args))
    prim.properties["function_type"] = FunctionType.from_lists([a.type for a in block.args], [])
    mark_checked(prim)
