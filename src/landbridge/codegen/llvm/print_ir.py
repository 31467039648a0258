"""Prints lowered functions as LLVM IR text.

A public function ``@name(memrefs..., %begin: index, %end: index)`` becomes a kernel of the native interface
(landbridge.executable.abi): ``void name(ptr args, i64 begin, i64 end, ptr workspace)`` loads the operand addresses and
calls the internal function that holds the body, whose pointers are ``noalias``. Temporaries in the workspace are
further parameters of that function, behind the others. A private function becomes the internal function alone and may
take scalars and vectors. The unit attribute ``lb.in_place`` says that an
output may be an input, and takes ``noalias`` away.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import MemRefType, VectorType
from xdsl.ir import Attribute, Operation

from landbridge.analysis.kernel_workspace import in_workspace
from landbridge.codegen.functions import (
    body_of,
    errors_of,
    is_kernel,
    operand_count,
    returned_type,
)
from landbridge.codegen.layout import is_row_table
from landbridge.codegen.llvm import arith, byte_dot, casts, control, float_arith, math, memory, vector
from landbridge.codegen.llvm.emitter import LlvmEmitter, LlvmModule, Printer
from landbridge.codegen.llvm.isa import REDUCED
from landbridge.codegen.llvm.types import extent_bytes
from landbridge.instruction_sets.isa import Isa
from landbridge.ir.kernel_attributes import copies_unless_same, is_in_place
from landbridge.ir.types import shape_of
from landbridge.sizes.size import Extent, least

#: The type, and in the names of the intrinsics that have it.
_BFLOAT = re.compile(r"(@llvm\.masked\.\w+\.v\d+)bf16\b|\bbfloat\b")

PRINTERS: dict[type[Operation], Printer] = {
    **arith.PRINTERS,
    **float_arith.PRINTERS,
    **casts.PRINTERS,
    **math.PRINTERS,
    **memory.PRINTERS,
    **vector.PRINTERS,
    **byte_dot.PRINTERS,
    **control.PRINTERS,
}


def print_functions(functions: Sequence[func.FuncOp], isa: Isa) -> str:
    """Returns the LLVM module of ``functions``, which may call each other and nothing else.

    Raises CodegenError for an operation, type or signature that has no LLVM form.
    """
    state = LlvmModule(isa)
    texts = [_function(state, f) for f in functions]
    attributes = f'attributes #0 = {{ nounwind {isa.attributes} "prefer-vector-width"="{isa.vector_bits}" }}'
    metadata = [*state.metadata, *((REDUCED,) if state.bases >= isa.many_bases else ())]
    parts = [*state.declarations.values(), *state.helpers.values(), *texts, attributes, *metadata, ""]
    # a function of bf16 may declare the same symbol as one of i16
    return "\n".join(dict.fromkeys(map(_in_bits, parts)))


def _in_bits(text: str) -> str:
    """Returns ``text`` with bf16 replaced by integers of its bits, as nothing is computed in it.

    On a CPU that lacks the type LLVM keeps a value of it, between blocks or passed to a function, as an f32, and gets
    back by a function of a compiler's own library, which an image cannot import.
    """
    if "bf" not in text:  # most modules have none: the expression takes seconds for a large model
        return text
    return _BFLOAT.sub(lambda found: f"{found[1] or ''}i16", text)


def _function(state: LlvmModule, function: func.FuncOp) -> str:
    name = function.sym_name.data
    e = LlvmEmitter(state, PRINTERS)
    restricted = not is_in_place(function)
    with errors_of(name):
        body, result = body_of(function), returned_type(function)
        params = [f"{_param(state, argument.type, restricted)} {e.define(argument)}" for argument in body.args]
        places = in_workspace(function) if is_kernel(function) else {}
        e.given = frozenset(places)
        params += [f"{_param(state, op.memref.type, True)} {e.define(op.memref)}" for op in places]
        e.region(body.ops)
        returned = state.type(result) if result is not None else "void"
    inlining = "noinline " if is_kernel(function) else ""
    aligned = f"alignstack({state.isa.stack_bytes}) " if state.isa.stack_bytes and uses_vectors(function) else ""
    header = f"define internal {returned} {control.body_symbol(name)}({', '.join(params)}) {inlining}{aligned}#0 {{"
    text = "\n".join([header, "entry:", *e.entry_lines, *e.lines, "}", ""])
    return text + _kernel(function, places) if is_kernel(function) else text


def _param(state: LlvmModule, kind: Attribute, restricted: bool) -> str:
    if not isinstance(kind, MemRefType):
        return state.type(kind)
    noalias = "noalias " if restricted else ""
    if is_row_table(kind):
        return f"ptr {noalias}nocapture readonly {_dereferenceable(8 * shape_of(kind)[0])}align 8"
    return f"ptr {noalias}nocapture {_dereferenceable(extent_bytes(kind))}align {state.view(kind).align}"


def _dereferenceable(nbytes: Extent) -> str:
    """Returns the attribute of a pointer to ``nbytes``; none where a run may decide that there are no bytes."""
    known = least(nbytes)
    return f"dereferenceable({known}) " if known else ""


def _kernel(function: func.FuncOp, places: Mapping[memref.AllocaOp, int]) -> str:
    """Returns the exported function: it loads the operands' addresses from an array, those of ``places`` from the
    workspace.
    """
    name, count = function.sym_name.data, operand_count(function)
    lines = [f'define void @"{name}"(ptr %args, i64 %begin, i64 %end, ptr %workspace) #0 {{', "entry:"]
    for i in range(count):
        lines.append(f"  %s{i} = getelementptr inbounds i64, ptr %args, i64 {i}")
        lines.append(f"  %a{i} = load ptr, ptr %s{i}, align 8")
    for i, at in enumerate(places.values()):
        lines.append(f"  %t{i} = getelementptr inbounds i8, ptr %workspace, i64 {at}")
    temporaries = (f"ptr %t{i}" for i in range(len(places)))
    operands = ", ".join([*(f"ptr %a{i}" for i in range(count)), "i64 %begin", "i64 %end", *temporaries])
    if copies_unless_same(function):
        lines += ["  %same = icmp eq ptr %a0, %a1", "  br i1 %same, label %done, label %copy", "copy:"]
    body = f"  call void {control.body_symbol(name)}({operands})"
    return "\n".join([*lines, body, "  br label %done", "done:", "  ret void", "}", ""])


def uses_vectors(function: func.FuncOp) -> bool:
    """Returns whether the function was lowered to vectors already, so that LLVM's loop vectorizer has nothing to do."""
    return any(isinstance(r.type, VectorType) for op in function.walk() for r in op.results)
