"""Appending calls: kernels that copy a carried value to the beginning of an iteration's result.

Where both are the same memory, that of the longer one, there is nothing to copy.
"""

from __future__ import annotations

from landbridge.dtypes import dtype
from landbridge.executable import instructions as ins
from landbridge.executable.abi import RECORD_WORDS
from landbridge.executable.parts import Function, TensorSpec
from landbridge.sizes.size import Extent, always_at_least, product
from landbridge.vm.program import NativeStep, Program


def appending_call(function: Function, program: Program, taken: int, given: int) -> int | None:
    """Returns the number of the record of ``program`` that copies input ``taken`` to the beginning of output ``given``.

    The output is known to begin with the input. None where no single call copies it, or an earlier call touches that
    part of the output, so that the copy is needed.
    """
    calls = [each for each in function.instructions if isinstance(each, ins.Call)]
    rest = (ins.Call, ins.View, ins.AllocTensor, ins.AllocStorage, ins.LoadConstant)
    match program.steps:
        case (NativeStep(_, records),) if records == len(calls):
            pass
        case _:
            return None
    if not all(isinstance(each, rest) for each in function.instructions):
        return None
    specs = (*function.inputs, *function.outputs)
    whole = _nbytes(specs[taken])
    #: Registers that are parts of one of the two: which one, and from which byte to which.
    parts: dict[int, tuple[int, Extent, Extent]] = {each: (each, 0, _nbytes(specs[each])) for each in (taken, given)}
    number = 0
    for each in function.instructions:
        if isinstance(each, ins.View) and each.src in parts:
            source, begin, _ = parts[each.src]
            first = begin + each.offset
            parts[each.dst] = source, first, first + product(each.shape) * dtype(each.dtype).itemsize
        if isinstance(each, ins.Call):
            touched = [parts[register] for register in each.args if register in parts]
            if each.moves_bytes == whole and touched == [(taken, 0, whole), (given, 0, whole)] and len(each.args) == 2:
                return number
            if not all(always_at_least(begin, whole) for source, begin, _ in touched if source == given):
                return None
            number += 1
    return None


def record_words(program: Program, number: int) -> slice:
    """Returns the words of record ``number`` of ``program``."""
    (step,) = program.steps
    assert isinstance(step, NativeStep)
    first = step.first + number * RECORD_WORDS
    return slice(first, first + RECORD_WORDS)


def _nbytes(spec: TensorSpec) -> Extent:
    return product(spec.shape) * dtype(spec.dtype).itemsize
