"""Runs the system's C compiler on printed files."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from landbridge.codegen.c.process_group import ProcessGroup
from landbridge.codegen.link import only_linked
from landbridge.codegen.llvm.isa import flags_of
from landbridge.errors import CodegenError
from landbridge.instruction_sets.registry import instruction_set, is_known
from landbridge.process.background_threads import check_threads
from landbridge.process.helper_process import environment
from landbridge.records import record
from landbridge.targets import c_compiler

if TYPE_CHECKING:
    from landbridge.targets.target import Target

#: No libraries of the compiler, no writable sections, no calls of memcpy instead of loops; NaN and infinities are
#: preserved.
_FLAGS = (
    "-std=c11",
    "-D_GNU_SOURCE",
    "-U_FORTIFY_SOURCE",
    "-fPIC",
    "-fvisibility=hidden",
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-strict-aliasing",
    "-fno-stack-protector",
    "-fno-asynchronous-unwind-tables",
    "-fno-lto",
    "-w",
)
#: Of gcc. Kernels are vectors and unrolled already: runs take 0.93 to 1.06 of their time with -O3 (0.99 in the mean),
#: which makes code of a pool's windows that gcc's later passes take minutes and gigabytes over.
_GCC_FLAGS = (
    "-O2",
    "-ftree-vectorize",
    "-fvect-cost-model=dynamic",
    "-fno-tree-loop-distribute-patterns",
    "-Wno-psabi",
)
_CLANG_FLAGS = ("-O3",)


@record(frozen=True)
class Compiler:
    """A C compiler and its command; ``required_flags`` are Linux's flags of the instructions that it may emit."""

    path: str
    flags: tuple[str, ...]
    isa: str
    required_flags: tuple[str, ...]


def compiler_for(target: Target) -> Compiler:
    """Returns the compiler of ``target``; raises CodegenError when there is none or it refuses the target's CPU."""
    declared = str(target.options.get("compiler", ""))
    path = c_compiler.find(declared)
    if path is None:
        looked_for = repr(declared) if declared else ", ".join(map(repr, c_compiler.NAMES))
        raise CodegenError(
            f"target 'c' needs a C compiler and finds none (looked for {looked_for}); install one (Debian: "
            "apt-get install gcc), name it with -compiler=, or use target 'llvm', which needs none"
        )
    try:
        machine = c_compiler.machine_flags(path, target.mcpu, target.mattr)
        macros = c_compiler.macros(path, machine)
    except ValueError as error:
        raise CodegenError(f"{path} refuses the CPU of target {str(target)!r}: {error}") from error
    _check_linked(path, machine, target)
    isa = c_compiler.isa(macros)
    if not is_known(isa):
        raise CodegenError(f"{path} makes code for {isa}, which {only_linked(str(target), isa)}")
    on = c_compiler.features(macros)
    flags = [*_FLAGS, *machine]
    flags += _CLANG_FLAGS if "__clang__" in macros else _GCC_FLAGS
    if target.vector_bits >= 512:
        flags.append("-mprefer-vector-width=512")
    extra = target.options.get("cflags", ())
    flags += extra if isinstance(extra, tuple) else [str(extra)]
    flags += instruction_set(isa).c_language.flags  # last, as code without them cannot be linked
    if extra:
        _check_linked(path, tuple(flags), target)
    return Compiler(path, tuple(flags), isa, flags_of(isa, on))


def _check_linked(path: str, flags: tuple[str, ...], target: Target) -> None:
    """Raises CodegenError for a compiler whose code with ``flags`` cannot be linked with that of Landbridge; flags that
    it refuses are its own to report.
    """
    try:
        refusal = c_compiler.refusal(c_compiler.macros(path, flags))
    except ValueError:
        return
    if refusal:
        raise CodegenError(f"{path} {refusal}; in the place of {str(target)!r}")


def compile_all(sources: Sequence[str], compiler: Compiler) -> list[bytes]:
    """Returns the objects of ``sources``, in order, compiled at once; raises CodegenError with the compiler's
    message.
    """
    check_threads(max(1, len(sources)))
    try:
        with (
            TemporaryDirectory(prefix="landbridge-") as name,
            ThreadPoolExecutor(max(1, len(sources))) as pool,
            ProcessGroup(name) as group,  # left first: an interrupt must not wait for a compiler
        ):
            return list(pool.map(lambda job: _compile(Path(name), job[0], job[1], compiler, group), enumerate(sources)))
    except OSError as error:
        raise CodegenError(
            f"the C compiler's files cannot be written: {error}; make room, or name another folder by TMPDIR"
        ) from error


def _compile(directory: Path, number: int, source: str, compiler: Compiler, group: ProcessGroup) -> bytes:
    text, created = directory / f"{number}.c", directory / f"{number}.o"
    text.write_text(source, encoding="utf-8")
    command = [compiler.path, *compiler.flags, "-c", str(text), "-o", str(created)]
    # files that it leaves when it is killed are removed with the folder
    child_environment = {**environment(), "TMPDIR": str(directory)}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=child_environment, process_group=group.number
        )
    except OSError as error:
        raise CodegenError(
            f"the C compiler {compiler.path!r} does not run: {error}; name another with -compiler="
        ) from error
    if done.returncode != 0:
        shown = "\n".join(done.stderr.strip().splitlines()[:5]) or f"status {done.returncode}, no message"
        raise CodegenError(f"{compiler.path} rejects the generated C, or an option (-cflags=): {shown}")
    return created.read_bytes()
