"""Functions of a module that was given as IR: each is compiled as it is, so that it can be called by its name.

The passes fuse what @main calls, and drop what it does not call. So that every PrimFunc of the IR is callable, those
whose code @main does not have are compiled once more, each in a program of its own, which only calls it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Block, Region

from landbridge.analysis.accesses import writers_of
from landbridge.emit import emit
from landbridge.errors import CompileError
from landbridge.executable.executable import Executable
from landbridge.executable.instructions import Call, flattened
from landbridge.executable.parts import Function, given_function
from landbridge.ir.graph_ops import CallOp
from landbridge.ir.kernel_attributes import target_number
from landbridge.ir.main_attributes import set_io_names
from landbridge.ir.module import IRModule
from landbridge.ir.op_attributes import place_on
from landbridge.ir.traversal import operations_of
from landbridge.ir.types import SpaceAttr, VDeviceAttr, nbytes_of
from landbridge.passes.lower.in_groups import lower_kernels
from landbridge.passes.registry import run_pipeline
from landbridge.sizes.size import Size

#: The passes of a program that only calls one function.
_PASSES = ("scratch", "plan")


def functions_of(module: IRModule) -> dict[str, func.FuncOp]:
    """Returns copies of the PrimFuncs of ``module``, by name: those in flat memory whose extents are known."""
    return {name: prim.clone() for name, prim in module.prims().items() if all(map(_is_known, _types(prim)))}


def _types(prim: func.FuncOp) -> Sequence[object]:
    return [argument.type for argument in prim.body.block.args]


def _is_known(ty: object) -> bool:
    is_flat = isinstance(ty, MemRefType) and not isinstance(ty.memory_space, SpaceAttr)
    return is_flat and not isinstance(nbytes_of(ty), Size)  # type: ignore[arg-type]


def compiled_functions(
    functions: Mapping[str, func.FuncOp], module: IRModule, executable: Executable, called: frozenset[str]
) -> Iterator[tuple[str, Executable, ModuleOp]]:
    """Yields the name, the program and the lowered kernel of each of ``functions`` that ``executable``, the program of
    ``module`` after its passes, does not call unchanged and by that name.

    ``called``: those that @main calls in the IR. One of these that cannot be compiled alone is left out; for others the
    CompileError is raised.
    """
    calls = {each.function for each in flattened(executable.main.instructions) if isinstance(each, Call)}
    left = module.prims()
    for name, function in functions.items():
        if name in calls and name in left and left[name].body.is_structurally_equivalent(function.body):
            continue
        if module.declined(function, module.targets[target_number(function)]) is not None:
            continue
        try:
            alone = run_pipeline(calling(name, function, module), _PASSES)
            lowered, variants = lower_kernels(alone)
            yield name, replace(emit(alone, lowered, variants), vdevices=executable.vdevices), lowered
        except CompileError:
            if name not in called:
                raise


def called_functions(module: IRModule) -> frozenset[str]:
    """Returns the names of the PrimFuncs that @main of ``module`` calls."""
    return frozenset(op.callee_name for op in operations_of(module.main, CallOp))


def as_functions(executable: Executable, names: Sequence[str]) -> Executable:
    """Returns ``executable``, whose programs are @main and then one for each of ``names``, with these as functions that
    a Session does not run.
    """
    main, *others = executable.functions.values()
    functions: dict[str, Function] = {main.name: main}
    for name, function in zip(names, others, strict=True):
        functions[given_function(name)] = replace(function, name=given_function(name))
    memory = tuple(report for report in executable.memory if report.program == main.name)
    return replace(executable, functions=functions, memory=memory)


def calling(name: str, function: func.FuncOp, module: IRModule) -> IRModule:
    """Returns a module whose @main calls ``function`` on its own inputs and outputs, in buffers."""
    arguments = function.body.block.args
    written = [bool(writers_of(argument)) for argument in arguments]
    inputs = written.index(True) if True in written else len(written)
    if not all(written[inputs:]):
        late = inputs + written[inputs:].index(False)
        raise CompileError(
            f"@{name} writes operand {inputs} and only reads operand {late}; destinations come last: give them in that "
            "order"
        )
    block = Block(arg_types=[argument.type for argument in arguments])
    call = CallOp(name, block.args[:inputs], block.args[inputs:], [], name)
    place_on(call, VDeviceAttr.of(_vdevice(module, target_number(function))))
    block.add_ops([call, func.ReturnOp()])
    main = func.FuncOp("main", (list(block.arg_types), ()), Region(block))
    names = [f"operand{number}" for number in range(len(arguments))]
    set_io_names(main, names[:inputs], names[inputs:])
    return replace(module, op=ModuleOp([function, main]), constants={}, parameters={}, bodies={})


def _vdevice(module: IRModule, target: int) -> int:
    """Returns the first vdevice that ``target`` compiles for."""
    return next(number for number, vdevice in enumerate(module.vdevices) if vdevice.target == target)
