"""Compiles LLVM IR text to object code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import llvmlite.binding as llvm
from llvmlite.binding.newpassmanagers import (
    NewPassManager,
    create_new_function_pass_manager,
    create_new_module_pass_manager,
)

from landbridge.codegen.llvm.isa import REDUCED
from landbridge.codegen.llvm.machine import Machine
from landbridge.errors import CodegenError
from landbridge.process.locks import adopt, new_lock

# llvmlite lets one thread into LLVM at a time; this lock also keeps a context to one thread.
_lock = new_lock()
adopt(getattr(getattr(llvm.ffi.lib, "_lock", None), "_lock", None))  # llvmlite's own


@cache
def _target_machine(machine: Machine) -> Any:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        target = llvm.Target.from_triple(machine.triple)
        return target.create_target_machine(
            cpu=machine.cpu, features=machine.features, opt=3, reloc=machine.relocation, codemodel="small"
        )
    except RuntimeError as error:
        raise CodegenError(f"LLVM cannot compile for {machine}: {error}") from error


def compile_ir(text: str, machine: Machine, *, vectorize: bool = True) -> bytes:
    """Returns the relocatable object of the LLVM module ``text``, optimized.

    ``vectorize`` lets LLVM vectorize and unroll loops; it only costs time where the code is vectors already, and so
    does strength reduction where the module does not say that it is REDUCED. Raises
    CodegenError, with LLVM's message, when the text does not parse or does not verify.
    """
    with _lock, _strength_reduction(vectorize or REDUCED in text):
        return bytes(_target_machine(machine).emit_object(optimized(text, machine, vectorize)))


@contextmanager
def _strength_reduction(wanted: bool) -> Iterator[None]:
    """Enables or disables strength reduction within the block; LLVM has one switch for the process, which is on
    afterwards.
    """
    if wanted:
        yield
        return
    llvm.set_option("landbridge", "-disable-lsr=true")
    try:
        yield
    finally:
        llvm.set_option("landbridge", "-disable-lsr=false")


def optimized(text: str, machine: Machine, vectorize: bool) -> Any:
    """Returns the module ``text`` after LLVM's passes, in its own context; parameters are those of ``compile_ir``."""
    target_machine = _target_machine(machine)
    try:
        module = llvm.parse_assembly(text, context=llvm.create_context())
        module.triple = machine.triple
        module.data_layout = str(target_machine.target_data)
        # Never skipped: LLVM ends the process on IR that its verifier would have rejected.
        module.verify()
    except RuntimeError as error:
        raise CodegenError(f"LLVM rejects the generated IR: {error}") from error
    functions = [function for function in module.functions if not function.is_declaration]
    builder = _pass_builder(target_machine, vectorize)
    short = [each for each in functions if any(b"alwaysinline" in attribute for attribute in each.attributes)]
    if vectorize or _calls_inside(functions, len(short)):
        _run(builder.getModulePassManager(), [module], builder)
        return module
    if short:
        _run(_inlining(), [module], builder)
        functions = [function for function in module.functions if not function.is_declaration]
    _run(_tidying(), functions, builder)
    return module


def _inlining() -> Any:
    """Returns passes that inline the functions that are always inlined, and drop them."""
    passes = create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    return passes


def _tidying() -> Any:
    """Returns passes for code that was written as vectors, with loop-invariant code motion.

    The other passes of LLVM's own pipelines take five times as long and give code that is no faster.
    """
    passes = create_new_function_pass_manager()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    return passes


def _calls_inside(functions: Sequence[Any], short: int) -> bool:
    """Returns whether LLVM has to decide about functions to inline: all but the body of each kernel, which stays a
    function, and but for ``short`` ones, which are always inlined.
    """
    internal = [function for function in functions if function.linkage == llvm.Linkage.internal]
    return (len(internal) - short) * 2 > len(functions) - short


def _pass_builder(target_machine: Any, vectorize: bool) -> Any:
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = vectorize
    options.slp_vectorization = vectorize
    options.loop_unrolling = vectorize
    return llvm.create_pass_builder(target_machine, options)


def _run(passes: Any, parts: Iterable[Any], builder: Any) -> None:
    try:
        for part in parts:
            passes.run(part, builder)
    finally:
        # llvmlite never does: the class inherits an empty _dispose before its own. Each pipeline is 100 KB.
        NewPassManager._dispose(passes)
        passes.detach()
