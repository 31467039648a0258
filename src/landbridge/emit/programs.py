"""Combines several programs of one model in one Executable, which share kernels and constants."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr

from landbridge.executable.executable import Executable
from landbridge.executable.instructions import AllocStorage, Call, If, Instruction, LoadConstant, Loop, View
from landbridge.executable.parts import Function, StorageReport, program_name
from landbridge.ir.traversal import operations
from landbridge.passes.dedup import content


def together(
    programs: Sequence[tuple[Executable, ModuleOp, Sequence[Mapping[str, tuple[int, ...]]]]],
) -> tuple[Executable, ModuleOp, list[dict[str, str]]]:
    """Returns one Executable, without code, of several, their lowered kernels in one module, and the new kernel names.

    The new names are given for each program, by the old ones. Each program comes with conditions on its inputs, by
    name, one mapping for each function. A scope that only some programs use is a vdevice of all.
    """
    known: dict[Hashable, str] = {}
    kernels: list[func.FuncOp] = []
    constants: dict[str, np.ndarray[Any, Any]] = {}
    functions: dict[str, Function] = {}
    renamed: list[dict[str, str]] = []
    memory: list[StorageReport] = []
    first, *_ = (executable for executable, _, _ in programs)
    vdevices = tuple(dict.fromkeys(each for executable, _, _ in programs for each in executable.vdevices))
    for number, (executable, lowered, chosen) in enumerate(programs):
        names: dict[str, str] = {}
        for op in operations(lowered.body.block):
            if not isinstance(op, func.FuncOp):
                continue
            old, key = op.sym_name.data, content(op)
            if key not in known:
                known[key] = f"{old}_of{number}" if number else old
                lowered.body.block.detach_op(op)
                op.properties["sym_name"] = StringAttr(known[key])
                kernels.append(op)
            names[old] = known[key]
        renamed.append(dict(names))
        for name, array in executable.constants.items():
            names[f"@{name}"] = same = _name(constants, name, array)
            constants[same] = array
        main = _on(executable.main, [vdevices.index(each) for each in executable.vdevices])
        instructions = tuple(_renamed(each, names) for each in main.instructions)
        for elements in chosen:
            inputs = tuple(replace(s, elements=elements.get(s.name, s.elements)) for s in main.inputs)
            called = program_name(len(functions))
            functions[called] = replace(main, name=called, inputs=inputs, instructions=instructions)
            memory += [replace(report, program=called) for report in executable.memory]
    scratch = max(executable.scratch_bytes for executable, _, _ in programs)
    combined = replace(
        first,
        vdevices=vdevices,
        functions=functions,
        constants=constants,
        memory=tuple(memory),
        scratch_bytes=scratch,
    )
    return combined, ModuleOp(list(kernels)), renamed


def _name(constants: Mapping[str, np.ndarray[Any, Any]], name: str, array: np.ndarray[Any, Any]) -> str:
    """Returns a name for ``array`` that no other of ``constants`` has."""
    called, number = name, 0
    while called in constants and not _equal(constants[called], array):
        number += 1
        called = f"{name}.{number}"
    return called


def _equal(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> bool:
    if (left.shape, left.dtype) != (right.shape, right.dtype):
        return False
    return left.ctypes.data == right.ctypes.data or left.tobytes() == right.tobytes()


def _renamed(instruction: Instruction, names: Mapping[str, str]) -> Instruction:
    match instruction:
        case Call(function=name):
            return replace(instruction, function=names.get(name, name))
        case LoadConstant(name=name):
            return replace(instruction, name=names.get(f"@{name}", name))
        case If():
            then, orelse = (tuple(_renamed(e, names) for e in side) for side in (instruction.then, instruction.orelse))
            return replace(instruction, then=then, orelse=orelse)
        case Loop():
            return replace(instruction, body=tuple(_renamed(each, names) for each in instruction.body))
    return instruction


def _on(function: Function, numbers: Sequence[int]) -> Function:
    """Returns ``function`` with vdevice ``numbers[n]`` in place of ``n``."""
    if list(numbers) == list(range(len(numbers))):
        return function
    specs = [
        tuple(replace(spec, vdevice=numbers[spec.vdevice]) for spec in side)
        for side in (function.inputs, function.outputs, function.parameters)
    ]
    instructions = tuple(_instruction_on(each, numbers) for each in function.instructions)
    return replace(function, inputs=specs[0], outputs=specs[1], parameters=specs[2], instructions=instructions)


def _instruction_on(instruction: Instruction, numbers: Sequence[int]) -> Instruction:
    match instruction:
        case AllocStorage() | LoadConstant() | View() | Call():
            return replace(instruction, vdevice=numbers[instruction.vdevice])
        case If():
            then, orelse = (
                tuple(_instruction_on(e, numbers) for e in side) for side in (instruction.then, instruction.orelse)
            )
            return replace(instruction, then=then, orelse=orelse)
        case Loop():
            return replace(instruction, body=tuple(_instruction_on(each, numbers) for each in instruction.body))
    return instruction
