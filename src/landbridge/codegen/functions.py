"""The functions of a lowered module: which are kernels, which call each other."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from landbridge.errors import CodegenError

#: On a function: an output may share memory with an input.
IN_PLACE_ATTRIBUTE = "lb.in_place"


def is_kernel(function: func.FuncOp) -> bool:
    """Whether other modules may call it, through the native interface."""
    return not (function.sym_visibility is not None and function.sym_visibility.data == "private")


def callees(function: func.FuncOp) -> set[str]:
    """The names of the functions that ``function`` calls."""
    return {op.callee.root_reference.data for op in function.walk() if isinstance(op, func.CallOp)}


def call_groups(module: ModuleOp) -> list[list[func.FuncOp]]:
    """The functions of ``module`` in groups that call nothing outside of their group.

    Raises CodegenError for anything but functions, for two of one name and for a call of none.
    """
    functions: dict[str, func.FuncOp] = {}
    for op in module.body.block.ops:
        if not isinstance(op, func.FuncOp):
            raise CodegenError(f"{op.name!r} at the top of the module; only functions can be compiled")
        if functions.setdefault(op.sym_name.data, op) is not op:
            raise CodegenError(f"two functions are called {op.sym_name.data!r}; names must be unique")
    group_of: dict[str, list[func.FuncOp]] = {name: [f] for name, f in functions.items()}
    for name, function in functions.items():
        for callee in callees(function):
            if callee not in functions:
                raise CodegenError(f"function {name!r} calls {callee!r}, which the module does not define")
            group, other = group_of[name], group_of[callee]
            if group is not other:
                group.extend(other)
                for member in other:
                    group_of[member.sym_name.data] = group
    distinct = {id(group): group for group in group_of.values()}
    return [group for group in distinct.values() if any(map(is_kernel, group))]
