"""Prints lowered functions as C text.

A public function ``@name(memrefs..., %begin: index, %end: index)`` becomes a kernel of the native interface
(landbridge.executable.abi): ``void kernel_name(args, int64_t begin, int64_t end, void *workspace)`` reads the
operand addresses and calls the static function that holds the body, whose pointers are ``restrict`` unless the function
has the attribute ``lb.in_place``. Temporaries in the workspace are further parameters of the static function, behind
the others. In an image, arguments are words of 64 bits whatever the size of an address. A kernel for other runtimes has
an array of pointers, no workspace, and all temporaries on its stack. A private function becomes the static function
alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.resources import files

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Operation

from landbridge.analysis.kernel_workspace import in_workspace
from landbridge.codegen.c import arith, control, memory, vector
from landbridge.codegen.c.emitter import CEmitter, Printer
from landbridge.codegen.c.types import kind_of
from landbridge.codegen.c.unit import CUnit
from landbridge.codegen.functions import (
    body_of,
    callees,
    errors_of,
    is_kernel,
    operand_count,
    returned_type,
)
from landbridge.codegen.layout import is_row_table, strides_and_offset
from landbridge.errors import CodegenError
from landbridge.ir.kernel_attributes import copies_unless_same, is_in_place

PRINTERS: dict[type[Operation], Printer] = {
    **arith.PRINTERS,
    **memory.PRINTERS,
    **vector.PRINTERS,
    **control.PRINTERS,
}


def text_of(package: str, file: str) -> str:
    """Returns the C file ``file`` of ``package``."""
    return files(package).joinpath(file).read_text(encoding="utf-8")


def print_functions(
    functions: Sequence[func.FuncOp],
    names: Mapping[str, str],
    *,
    workspace: bool,
    emitter: Callable[[], CEmitter] | None = None,
) -> str:
    """Returns the C file of ``functions``, which call no others; ``names`` are their C identifiers.

    ``workspace``: kernels take one, as those of code images do. ``emitter`` makes the printer of one function in a
    dialect of C; all that it makes share a unit. Raises CodegenError for an operation, type or signature that has no C
    form.
    """
    if emitter is None:
        emitter = partial(CEmitter, CUnit(holds_words=workspace), PRINTERS)
    unit = emitter().unit
    unit.bodies = {f.sym_name.data: f"{names[f.sym_name.data]}_body" for f in functions}
    texts = [_function(emitter(), f, names, workspace) for f in _callees_first(functions)]
    prelude = [text_of(package, file) for package, file in unit.prelude]
    return "\n".join([*prelude, *unit.definitions.values(), "", *texts])


def _callees_first(functions: Sequence[func.FuncOp]) -> list[func.FuncOp]:
    by_name = {f.sym_name.data: f for f in functions}
    ordered: dict[str, func.FuncOp] = {}

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise CodegenError(
                f"function {name!r} calls itself through {' -> '.join(above)}; recursion is not compiled"
            )
        if name not in ordered:
            for callee in sorted(callees(by_name[name])):
                visit(callee, (*above, name))
            ordered[name] = by_name[name]

    for name in by_name:
        visit(name, ())
    return list(ordered.values())


def _function(e: CEmitter, function: func.FuncOp, names: Mapping[str, str], workspace: bool) -> str:
    name, unit = function.sym_name.data, e.unit
    qualifier = "" if is_in_place(function) else "restrict "
    params = []
    with errors_of(name):
        body, result = body_of(function), returned_type(function)
        for argument in body.args:
            e.names[argument] = e.fresh()
            params.append(f"{_parameter(unit, argument.type, qualifier)}{e.names[argument]}")
        places = in_workspace(function, unit.stack_bytes) if workspace and is_kernel(function) else {}
        e.given = frozenset(places)
        for op in places:
            e.names[op.memref] = e.fresh()
            params.append(f"{_parameter(unit, op.memref.type, 'restrict ')}{e.names[op.memref]}")
        e.region(body.ops)
        returned = unit.kind(result).text if result is not None else "void"
    linkage = "LB_NOINLINE" if is_kernel(function) else "LB_INLINE"
    head = f"{linkage} {returned} {unit.bodies[name]}({', '.join(params) or 'void'}) {{"
    text = "\n".join([head, *e.entry_lines, *e.lines, "}", ""])
    return text + _kernel(unit, function, names[name], places, workspace) if is_kernel(function) else text


def _parameter(unit: CUnit, kind: Attribute, qualifier: str) -> str:
    if isinstance(kind, MemRefType):
        if is_row_table(kind) and unit.holds_words:
            return f"const uint64_t *{qualifier}"
        if is_row_table(kind):
            return f"{unit.in_memory(kind_of(kind.element_type))} *const *{qualifier}"
        strides_and_offset(kind)  # raises unless it is static
        return f"{unit.in_memory(kind_of(kind.element_type))} *{qualifier}"
    return f"const {unit.kind(kind).text} "


def _kernel(
    unit: CUnit, function: func.FuncOp, identifier: str, places: Mapping[memref.AllocaOp, int], workspace: bool
) -> str:
    """Returns the exported function: it loads the operands' addresses from an array, those of ``places`` from the
    workspace.
    """
    temporaries = (f"(void *)((char *)workspace + {at})" for at in places.values())
    form, args = ("(void *)(uintptr_t)args[{}]", "const uint64_t *") if unit.holds_words else ("args[{}]", "void **")
    operands = ", ".join([*map(form.format, range(operand_count(function))), "begin", "end", *temporaries])
    given, unused = (", void *workspace", "\n  (void)workspace;") if workspace else ("", "")
    head = f"LB_EXPORT void {identifier}({args}args, int64_t begin, int64_t end{given})"
    # A prototype first: some compilers warn of an external function without one.
    if copies_unless_same(function):
        unused += "\n  if (args[0] == args[1])\n    return;"
    return f"{head};\n{head} {{\n  (void)args;{unused}\n  {unit.bodies[function.sym_name.data]}({operands});\n}}\n"
