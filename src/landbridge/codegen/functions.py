"""Queries about the functions of a lowered module: which are kernels, which call each other, whether their form is
legal.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager

from xdsl.dialects import func
from xdsl.dialects.builtin import IndexType, MemRefType, ModuleOp
from xdsl.ir import Attribute, Block

from landbridge.errors import CodegenError


def is_kernel(function: func.FuncOp) -> bool:
    """Returns whether ``function`` is a kernel, which is called through the native interface: it is not private."""
    return not (function.sym_visibility is not None and function.sym_visibility.data == "private")


def callees(function: func.FuncOp) -> set[str]:
    """Returns the names of the functions that ``function`` calls."""
    found, blocks = set(), list(function.body.blocks)
    while blocks:  # walk() would resume a generator for each nesting level of an operation
        for op in blocks.pop().ops:
            # isinstance takes ten times as long, and there are tens of thousands of operations
            if type(op) is func.CallOp:
                found.add(op.callee.root_reference.data)
            for region in op.regions:
                blocks += region.blocks
    return found


def body_of(function: func.FuncOp) -> Block:
    """Returns the only block of ``function``; raises CodegenError when it has several."""
    if len(function.body.blocks) != 1:
        raise CodegenError("its body must be one block of structured control flow")
    return function.body.block


def returned_type(function: func.FuncOp) -> Attribute | None:
    """Returns the type of the result of ``function``; raises CodegenError for several values."""
    outputs = function.function_type.outputs.data
    if len(outputs) > 1:
        raise CodegenError(f"it returns {len(outputs)} values; at most one is legal")
    return outputs[0] if outputs else None


def operand_count(kernel: func.FuncOp) -> int:
    """Returns the number of memrefs that ``kernel`` takes before the two indices of its range of tasks.

    Raises CodegenError for a function that is no kernel.
    """
    kind = kernel.function_type
    memrefs, bounds = kind.inputs.data[:-2], kind.inputs.data[-2:]
    legal = len(bounds) == 2 and all(isinstance(b, IndexType) for b in bounds) and not kind.outputs.data
    if not legal or not all(isinstance(m, MemRefType) for m in memrefs):
        raise CodegenError(
            f"function {kernel.sym_name.data!r} has type {kind}; a public function is a kernel: (memrefs..., index "
            "begin, index end) -> (). Make it private if only functions of its module call it"
        )
    return len(memrefs)


@contextmanager
def errors_of(name: str) -> Iterator[None]:
    """Adds "function 'name'" to a CodegenError that the ``with`` block raises."""
    try:
        yield
    except CodegenError as error:
        raise CodegenError(f"function {name!r}: {error}") from None


def c_names(functions: Iterable[func.FuncOp]) -> dict[str, str]:
    """Returns a distinct C identifier for each function, by its name: the name behind ``kernel_``, made a legal
    identifier.
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for function in functions:
        name = function.sym_name.data
        stem = identifier = "kernel_" + re.sub(r"\W", "_", name, flags=re.ASCII)
        count = 1
        while identifier in taken:
            count += 1
            identifier = f"{stem}__{count}"
        taken.add(identifier)
        names[name] = identifier
    return names


def identified_functions(module: ModuleOp) -> list[tuple[func.FuncOp, str]]:
    """Returns the functions of ``module``, each with its C identifier; raises CodegenError for other operations in
    it.
    """
    functions = [op for op in module.body.block.ops if isinstance(op, func.FuncOp)]
    if len(functions) != len(list(module.body.block.ops)):
        raise CodegenError("something else than functions at the top of the module; only functions can be compiled")
    names = c_names(functions)
    return [(function, names[function.sym_name.data]) for function in functions]


def call_groups(module: ModuleOp, alone: Container[func.FuncOp] = ()) -> list[list[func.FuncOp]]:
    """Returns the functions of ``module`` in groups: functions that call each other, directly or not, are in one group.

    ``alone`` are functions known to call none; they are not searched for calls. Groups without a kernel are left out.
    Raises CodegenError for anything but functions, for two of one name and for a call of a function that does not
    exist.
    """
    functions: dict[str, func.FuncOp] = {}
    for op in module.body.block.ops:
        if not isinstance(op, func.FuncOp):
            raise CodegenError(f"{op.name!r} at the top of the module; only functions can be compiled")
        if functions.setdefault(op.sym_name.data, op) is not op:
            raise CodegenError(f"two functions are called {op.sym_name.data!r}; names must be unique")
    group_of: dict[str, list[func.FuncOp]] = {name: [f] for name, f in functions.items()}
    for name, function in functions.items():
        for callee in () if function in alone else callees(function):
            if callee not in functions:
                raise CodegenError(f"function {name!r} calls {callee!r}, which the module does not define")
            group, other = group_of[name], group_of[callee]
            if group is not other:
                group.extend(other)
                for member in other:
                    group_of[member.sym_name.data] = group
    distinct: list[list[func.FuncOp]] = []
    placed: set[func.FuncOp] = set()
    for name, group in group_of.items():
        if functions[name] not in placed:
            distinct.append(group)
            placed.update(group)
    return [group for group in distinct if any(map(is_kernel, group))]
