"""Makes a code image of a module of lowered functions, by the system's C compiler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from landbridge.codegen.c.compile import compile_all, compiler_for
from landbridge.codegen.c.print_c import print_functions
from landbridge.codegen.cpu_runtime.object_code import runtime_object
from landbridge.codegen.functions import c_names, call_groups, is_kernel, operand_count
from landbridge.codegen.launch_sizes import over_words
from landbridge.codegen.link import link_objects
from landbridge.executable import abi
from landbridge.executable.device_image import Launch, LaunchSequence
from landbridge.executable.packed import PACKED_SYMBOL
from landbridge.executable.parts import CodeImage
from landbridge.instruction_sets.registry import instruction_set
from landbridge.ir.kernel_attributes import task_count
from landbridge.process.usable_cores import usable_cores
from landbridge.sizes.size import Size
from landbridge.targets.cpu_options import flushes_denormals

if TYPE_CHECKING:
    from landbridge.targets.target import Target

_RUNTIME = (abi.RUN_SYMBOL, abi.POOL_CREATE_SYMBOL, abi.POOL_DESTROY_SYMBOL, PACKED_SYMBOL)


def generate_image(module: ModuleOp, target: Target) -> CodeImage:
    """Returns the linked image of all functions of ``module`` and of the runtime; raises CodegenError."""
    compiler = compiler_for(target)
    can_flush = instruction_set(compiler.isa).flushes_denormals
    groups = call_groups(module)
    names = c_names(f for group in groups for f in group)
    sources = [print_functions(files, names, workspace=True) for files in _files(groups, usable_cores())]
    linked = link_objects([runtime_object(compiler.isa), *compile_all(sources, compiler)], compiler.isa)
    function_names = {identifier: name for name, identifier in names.items()}
    symbols = {function_names.get(s, s): at for s, at in linked.symbols.items() if s in function_names or s in _RUNTIME}
    return CodeImage(
        isa=compiler.isa,
        code=linked.code,
        symbols=symbols,
        imports=linked.imports,
        relocations=linked.relocations,
        features=compiler.required_flags,
        flushes_denormals=can_flush and flushes_denormals(target.options),
        slots_start=linked.slots_start,
        slot_references=linked.slot_references,
    )


def source_of(module: ModuleOp) -> str:
    """Returns one C file of all functions of ``module``."""
    functions = [f for group in call_groups(module) for f in group]
    return print_functions(functions, c_names(functions), workspace=False)


def kernels_of(module: ModuleOp) -> tuple[str, dict[str, LaunchSequence]]:
    """Returns ``source_of``, and the launch of each kernel in it, by the kernel's name."""
    functions = [f for group in call_groups(module) for f in group]
    names = c_names(functions)
    sequences = {}
    for kernel in filter(is_kernel, functions):
        operands, tasks = operand_count(kernel), task_count(kernel) or 0
        grid = (over_words(kernel, tasks), 1, 1)
        launch = Launch(names[kernel.sym_name.data], tuple(range(operands)), grid, (1, 1, 1))
        has_tasks = isinstance(tasks, Size) or tasks > 0
        sequences[kernel.sym_name.data] = LaunchSequence(operands, (), (launch,) if has_tasks else ())
    return print_functions(functions, names, workspace=False), sequences


def _files(groups: list[list[func.FuncOp]], count: int) -> list[list[func.FuncOp]]:
    """Returns ``groups`` distributed over at most ``count`` files of about equal numbers of operations."""
    sized = sorted(
        ((sum(1 for f in group for _ in f.walk()), i, group) for i, group in enumerate(groups)), reverse=True
    )
    files: list[list[func.FuncOp]] = [[] for _ in range(min(count, len(groups)))]
    loads = [0] * len(files)
    for size, _, group in sized:
        smallest = loads.index(min(loads))
        files[smallest] += group
        loads[smallest] += size
    return files
