"""Executors: what runs a bound Program, prepared so that a run has nothing left to decide."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Sequence
from functools import partial

from landbridge.executable.executable import Executable
from landbridge.executable.parts import CodeImage
from landbridge.vm.bind import bind_function
from landbridge.vm.code_image import LoadedImage, load_image
from landbridge.vm.device_kernels import ModuleKernels, load_kernels
from landbridge.vm.home import ON_MISMATCH, Home
from landbridge.vm.interpreter import BoundTo, RunNative, run_steps
from landbridge.vm.kernel_step import KernelStep
from landbridge.vm.program import NativeStep, Program
from landbridge.vm.program_memory import ProgramMemory
from landbridge.vm.registers import NotDirectError

#: Runs a program once, on what is bound.
Execute = Callable[[], object]
_RUN = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


def load_modules(executable: Executable, homes: Sequence[Home]) -> list[LoadedImage | ModuleKernels]:
    """The code of each module, for this CPU or on the devices that its vdevices are bound to.

    Raises BindError for kernels whose vdevices are on a device that runs none.
    """
    loaded: list[LoadedImage | ModuleKernels] = []
    for number, module in enumerate(executable.modules):
        if isinstance(module.image, CodeImage):
            loaded.append(load_image(module.image))
            continue
        places = zip(executable.vdevices, homes, strict=True)
        devices = dict.fromkeys(home.device for place, home in places if place.target == number)
        loaded.append(ModuleKernels([load_kernels(module.image, device, module.target) for device in devices]))
    return loaded


def bind_program(
    executable: Executable, images: Sequence[LoadedImage | ModuleKernels], memory: ProgramMemory
) -> Program:
    """The Program; where it may copy, memory that code cannot use in place is taken from the host instead."""
    while True:
        try:
            return bind_function(executable.main, executable.vdevices, images, memory)
        except NotDirectError as error:
            if executable.metadata.get(ON_MISMATCH) != "copy":
                raise
            memory.use_host(error.vdevice)


def executors(
    program: Program, words: array[int], runtime: int, pool: int, bound_to: BoundTo
) -> tuple[Execute, Execute]:
    """What executes ``program`` on ``words``, and what also lists the moves of kernels.

    The first is, for compiled code alone, the foreign function itself.
    """
    function, run_native = _native(runtime, pool)
    listed = partial(run_steps, program.listed_steps, words, run_native, bound_to)
    match program.steps:
        case (NativeStep(first, count),) if function:
            address = words.buffer_info()[0] + first * words.itemsize
            return partial(function, ctypes.c_void_p(pool), ctypes.c_void_p(address), ctypes.c_int64(count)), listed
        case (KernelStep() as step,):
            return partial(step.run, bound_to), listed
        case steps:
            return partial(run_steps, steps, words, run_native, bound_to), listed


def preparer(program: Program, words: array[int], runtime: int, pool: int, bound_to: BoundTo) -> Execute:
    """What computes all that depends on the parameters in ``words`` alone."""
    return partial(run_steps, program.preparation, words, _native(runtime, pool)[1], bound_to)


def _native(runtime: int, pool: int) -> tuple[Callable[..., object] | None, RunNative]:
    """The foreign function that runs records, if there is code, and the same on ``pool``."""
    if not runtime:
        return None, lambda address, count: None
    function = _RUN(runtime)
    return function, partial(function, pool)
