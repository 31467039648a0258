"""Frames: a program's words with what is bound to its slots, and the function that executes them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np

from landbridge.executable.parts import Function, TensorSpec
from landbridge.tensor import Tensor
from landbridge.vm.acquisition import Acquisition
from landbridge.vm.device_binding import DeviceBinding
from landbridge.vm.entry import Entry
from landbridge.vm.interpreter import run_steps
from landbridge.vm.kernel_step import BoundTo, KernelStep
from landbridge.vm.program import NativeStep, Program, Step
from landbridge.vm.slot import Role, Slot
from landbridge.vm.staging import Staging
from landbridge.vm.thread_pool import RunNative

#: A function that executes a program once, on what is bound.
Execute = Callable[[], object]


class Frame:
    """A copy of the words of ``program``, with the slots of ``function`` in them and what executes them.

    A program has two, so that what runs were given stays bound while calls are given something else. ``bindings`` has
    the memory of each vdevice. ``for_kernels``: arguments are given to kernels of a device, too. ``staging``: copies
    arguments through the host, where that is allowed. ``acquisition``: the scopes that executions take first.
    ``parameter_bindings``: for each parameter the memory that its readers use.

    ``execute`` is ready to run: for compiled code alone it is the foreign function itself. ``listed`` does the same and
    tells the ledger what kernels move; it is None when that is nothing. ``prepare`` computes all that depends on the
    parameters alone.
    """

    __slots__ = (
        "_acquisition",
        "_taken",
        "bound_to",
        "entry",
        "execute",
        "inputs",
        "listed",
        "number_words",
        "outputs",
        "parameters",
        "prepare",
        "slots",
        "staging",
        "words",
    )

    def __init__(
        self,
        program: Program,
        function: Function,
        run_native: RunNative,
        entry: Entry,
        bindings: Sequence[DeviceBinding],
        parameter_bindings: Sequence[DeviceBinding],
        *,
        for_kernels: bool,
        staging: Staging | None,
        acquisition: Acquisition,
    ) -> None:
        self.words = words = program.instantiate()
        #: A view of the same memory, to write many words at once.
        self.number_words = np.frombuffer(words, np.uint64)
        self.entry, self.staging = entry, staging
        slot = partial(Slot, words=words, program=entry)
        io = len(function.inputs) + len(function.outputs)
        used = any(program.places[:io])
        argument = partial(slot, for_kernels=for_kernels, staged=staging is not None)
        places, aliases = enumerate(program.places), dict(function.aliases)

        def bindable(role: Role, spec: TensorSpec) -> Slot:
            binding = bindings[spec.vdevice]
            register, words_of = next(places)
            return argument(
                role,
                spec,
                register,
                words_of,
                binding=binding,
                borrowed=used and not binding.is_direct and not spec.axis_separators,
                row_table=program.row_tables[register],
            )

        self.inputs = tuple(bindable("input", spec) for spec in function.inputs)
        self.outputs = tuple(bindable("output", spec) for spec in function.outputs)
        self.parameters = tuple(
            slot("parameter", spec, *next(places), binding=binding, for_kernels=not binding.is_host)
            for spec, binding in zip(function.parameters, parameter_bindings, strict=True)
        )
        by_name = {each.spec.name: each for each in self.inputs}
        for output in self.outputs:
            if (input := by_name.get(aliases.get(output.spec.name, ""))) is not None:
                output.alias, input.alias = input, output
        self.slots = slots = (*self.inputs, *self.outputs, *self.parameters)

        def bound_to(register: int) -> Any:
            return slots[register].owner

        self.bound_to: BoundTo = bound_to
        listed: Execute | None = None
        if program.listed_steps:
            listed = partial(run_steps, program.listed_steps, words, run_native, bound_to)
        self._acquisition = acquisition
        self._taken: tuple[Sequence[Step], RunNative] | None = None
        self.take(program.steps, listed, run_native)
        self.prepare: Execute = partial(run_steps, program.preparation, words, run_native, bound_to)

    def take(self, steps: Sequence[Step], listed: Execute | None, run_native: RunNative) -> None:
        """Set what executions run: ``steps``, whose records ``run_native`` runs, and under a ledger ``listed``."""
        if self._taken is None or steps is not self._taken[0] or run_native is not self._taken[1]:
            self._taken = steps, run_native
            self.execute = self._wrapped(self._execution(steps, run_native))
        self.listed = None if listed is None else self._wrapped(listed)

    def _execution(self, steps: Sequence[Step], run_native: RunNative) -> Execute:
        match steps:
            case (NativeStep(first, records),):
                address = self.words.buffer_info()[0] + first * self.words.itemsize
                return partial(run_native, ctypes.c_void_p(address), ctypes.c_int64(records))
            case (KernelStep() as step,):
                return partial(step.run, self.bound_to)
            case _:
                return partial(run_steps, steps, self.words, run_native, self.bound_to)

    def _wrapped(self, execute: Execute) -> Execute:
        execute = self._acquisition.wrap(execute)
        return execute if self.staging is None else self.staging.wrap(execute)

    def wait_queued(self) -> None:
        """Wait for copies of devices, and runs of other Sessions, that an execution must follow.

        Raises DeviceLostError for memory that went with its device.
        """
        for slot in self.slots:
            if isinstance(slot.owner, Tensor):
                slot.owner.storage.check_device()
                if slot.owner.storage.has_queued:
                    slot.wait(slot.owner)

    def orders(self) -> list[AbstractContextManager[Any]]:
        """Returns the locks that an execution holds, so that no other program runs on memory that the two share."""
        storages = [slot.owner.storage for slot in self.slots if isinstance(slot.owner, Tensor)]
        found = {storage.order for storage in storages if storage.order is not None}
        # Any order will do that is the same for all programs; the storages keep the locks alive.
        return sorted(found, key=id)
