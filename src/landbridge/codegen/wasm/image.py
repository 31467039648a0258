"""Makes a WebAssembly module of a module of lowered functions.

Kernel ``kernel_name`` is ``(args: i32, begin: i64, end: i64)``. ``args`` is the address of 64-bit words, whose first
halves are the addresses of the buffers: operands, then the scratch buffer of kernels with large temporaries. The module
imports its memory, the address where its stack ends, and functions of the C library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from landbridge.analysis.kernel_workspace import in_workspace, temporary_bytes
from landbridge.codegen.functions import c_names, call_groups, is_kernel, operand_count
from landbridge.codegen.launch_sizes import over_words
from landbridge.codegen.llvm.compile_jobs import Job, compile_all
from landbridge.codegen.llvm.machine import Machine
from landbridge.codegen.llvm.print_ir import print_functions, uses_vectors
from landbridge.codegen.printing import FUNCTIONS
from landbridge.errors import CodegenError
from landbridge.executable.device_image import DeviceImage, Launch, LaunchSequence
from landbridge.executable.wasm_binary import WASM_FORMAT, imported_functions, with_exports
from landbridge.instruction_sets.isa import Isa
from landbridge.ir.kernel_attributes import task_count
from landbridge.sizes.size import Size

if TYPE_CHECKING:
    from landbridge.targets.target import Target

_TRIPLE = "wasm32-unknown-unknown"
#: Of WebAssembly 2.0, which all browsers have since 2023.
_FEATURES = ("bulk-memory", "mutable-globals", "nontrapping-fptoint", "sign-ext")
_VECTORS = "simd128"
#: Functions of the C library, of doubles and with f of floats, that the host gives to modules.
_C_FUNCTIONS = frozenset(name + end for name in (*FUNCTIONS.values(), "fmod") for end in ("", "f"))
_VECTOR_BITS = 128


def generate_image(module: ModuleOp, target: Target) -> DeviceImage:
    """Returns the module of all functions of ``module``, and the launch of each kernel; raises CodegenError."""
    functions = [f for group in call_groups(module) for f in group]
    names = c_names(functions)
    kernels = [f for f in functions if is_kernel(f)]
    # Products and sums are rounded each: WebAssembly has no fused multiply-add whose result is certain.
    isa = Isa(target.vector_bits, fma=False, half=False)
    text = "\n".join([print_functions(functions, isa), *(_entry(f, names[f.sym_name.data]) for f in kernels)])
    job = Job(text, vectorize=not any(map(uses_vectors, functions)))
    # Another process than this does it, as for all foreign code. LLVM's generator for WebAssembly changes options of
    # its process, by which code for other processors would come out otherwise from then on (LLVM 22: the runtime's).
    (compiled,) = compile_all([job], _machine(target), processes=1)
    code = with_exports(compiled, [names[f.sym_name.data] for f in kernels])
    if missing := sorted({*imported_functions(code)} - _C_FUNCTIONS):
        raise CodegenError(
            f"kernels call {', '.join(missing)}, which WebAssembly does not have; compile the model for another target"
        )
    return DeviceImage(WASM_FORMAT, code, {f.sym_name.data: _sequence(f, names[f.sym_name.data]) for f in kernels})


def _machine(target: Target) -> Machine:
    features = (*_FEATURES, _VECTORS) if target.vector_bits >= _VECTOR_BITS else _FEATURES
    return Machine(_TRIPLE, "generic", ",".join(f"+{name}" for name in features), relocation="static")


def _entry(kernel: func.FuncOp, name: str) -> str:
    """Returns the exported function, which finds the scratch buffer behind the operands."""
    operands = operand_count(kernel)
    workspace = "null"
    lines = [f'define void @"{name}"(ptr %args, i64 %begin, i64 %end) {{', "entry:"]
    if in_workspace(kernel):
        lines.append(f"  %place = getelementptr inbounds i64, ptr %args, i64 {operands}")
        lines.append("  %workspace = load ptr, ptr %place, align 8")
        workspace = "%workspace"
    called = f'  call void @"{kernel.sym_name.data}"(ptr %args, i64 %begin, i64 %end, ptr {workspace})'
    return "\n".join([*lines, called, "  ret void", "}", ""])


def _sequence(kernel: func.FuncOp, name: str) -> LaunchSequence:
    operands, tasks = operand_count(kernel), task_count(kernel) or 0
    scratch = (temporary_bytes(kernel),) if in_workspace(kernel) else ()
    launch = Launch(name, tuple(range(operands + len(scratch))), (over_words(kernel, tasks), 1, 1), (1, 1, 1))
    has_tasks = isinstance(tasks, Size) or tasks > 0
    return LaunchSequence(operands, scratch, (launch,) if has_tasks else ())
