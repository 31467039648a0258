"""BoundProgram: a Program with its memory, its slots and two Frames, ready to execute.

One Frame serves ``Session.run`` and keeps what is bound; the other serves calls, whose arguments are bound for one
call. Nothing here locks: a Session lets one thread in at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from landbridge.executable.executable import Executable
from landbridge.executable.state_growth import slides_of
from landbridge.memory_kind import HostAccess
from landbridge.tensor import Tensor
from landbridge.vm.acquisition import Acquisition
from landbridge.vm.arena import ProgramArena
from landbridge.vm.argument import as_tensor
from landbridge.vm.bind import bind_function
from landbridge.vm.call_arguments import CallArguments
from landbridge.vm.code_image import LoadedImage
from landbridge.vm.device_binding import ON_MISMATCH, DeviceBinding
from landbridge.vm.device_kernels import ModuleKernels
from landbridge.vm.entry import Entry
from landbridge.vm.frame import Frame
from landbridge.vm.memory_check import MemoryCheck
from landbridge.vm.modules import load_modules
from landbridge.vm.parameter_memory import ParameterMemory
from landbridge.vm.program import Program
from landbridge.vm.program_memory import ProgramMemory
from landbridge.vm.recurrent_states import RecurrentStates
from landbridge.vm.registered_buffers import RegisteredBuffers
from landbridge.vm.registers import NotDirectError
from landbridge.vm.run_arguments import RunArguments
from landbridge.vm.slot import Slot
from landbridge.vm.staging import Staging
from landbridge.vm.thread_pool import RunNative, native_runner, stop_at_exit
from landbridge.vm.workspace import workspace_for


class BoundProgram:
    """The main function of ``executable`` in ``bindings`` (one for each vdevice) and on ``threads`` threads.

    Callers that execute it hold the lock of ``entry``, which other programs may have too. ``host_access``: as
    for IoMemory. ``arena`` has the memory of storages, where several programs run one after the other.
    ``memory_limit``: the most bytes of activations, or of one output. Raises BindError or ExecutableError when it
    cannot be bound, OutOfMemoryError where the machine has not the memory.
    """

    def __init__(
        self,
        executable: Executable,
        bindings: Sequence[DeviceBinding],
        threads: int,
        entry: Entry,
        host_access: HostAccess | None = None,
        arena: ProgramArena | None = None,
        memory_limit: int | None = None,
    ) -> None:
        self.entry = entry
        arena = ProgramArena() if arena is None else arena
        self.memory_check = MemoryCheck(executable, bindings, threads, arena, memory_limit)
        self.memory_check.check(executable)
        self.memory = memory = ProgramMemory(executable, bindings, arena, host_access, memory_limit)
        self._images = images = load_modules(executable, bindings)
        self.program = program = _bind(executable, images, memory)
        _ = memory.io.binding  # raises where the binding is missing
        self._native = native = [image for image in images if isinstance(image, LoadedImage)]
        self._workspace = workspace_for(executable.scratch_bytes)
        self.most_threads, self.threads = threads, threads if program.needs_threads else 1
        self.run_native = self.runner(self.threads)
        stop_at_exit(self)

        self._acquisition = Acquisition(memory.bindings, memory.residents)
        self._parameter_memory = ParameterMemory(executable, memory.bindings)
        frame = partial(
            Frame,
            program,
            executable.main,
            self.run_native,
            entry,
            memory.bindings,
            self._parameter_memory.bindings,
            for_kernels=len(native) < len(images),
            acquisition=self._acquisition,
        )
        staged = memory.binding(0) is not bindings[0]  # arguments may then be staged through host memory
        buffers = RegisteredBuffers()
        self.runs = RunArguments(frame(staging=Staging() if staged else None), memory, buffers)
        self._acquisition.preparation = self.runs.frame.prepare  # of nothing else, so that it ends with its last user
        self.calls = CallArguments(frame(staging=Staging(once=True) if staged else None), memory, buffers)
        self.states = RecurrentStates(self.runs, self.calls, slides_of(executable))
        for slot in self.runs.frame.parameters:
            first = memory.parameter(slot.spec)
            self.runs.bind(slot, first.data_address, first)
            self.calls.follow(slot)
        memory.finish_file_checks()
        if program.preparation:
            with entry.waited_for():  # which exit waits for, too
                self._acquisition.prepare()

    def runner(self, threads: int) -> RunNative:
        """Returns the function that runs the program's records on ``threads`` threads."""
        return native_runner(self._native, threads, self._workspace)

    def hold_scopes(self) -> AbstractContextManager[object]:
        """Returns a context manager that holds the scopes which executions acquire; raises ScopeBusyError."""
        return self._acquisition.hold()

    def set_parameters(self, values: Sequence[tuple[Slot, Any]]) -> None:
        """Copy new values to the program's own memory of parameters, all or none; the file's values stay as they
        are.
        """
        for slot, value in values:
            as_tensor(slot, value)  # raises before anything is copied
        for slot, value in values:
            self.runs.copy_in(slot, value, "set_params")
            self.calls.follow(slot)
        self.calls.drop_shared([slot for slot, _ in values])
        self._acquisition.prepare()

    def borrow_parameters(self, values: Sequence[tuple[Slot, Tensor]]) -> Callable[[], object]:
        """Returns a function that binds parameters to the memory of ``values``, all of them, in place.

        Raises InputError and ZeroCopyError where one cannot be bound; nothing has changed then.
        """
        written = (*self.runs.frame.outputs, *(half for _, half in self.states.pairs))
        borrowed: list[tuple[Slot, int, object]] = []
        for slot, value in values:
            address, owner = self._parameter_memory.borrow(slot, value)
            self.runs.check_no_overlap(slot, address, written)
            borrowed.append((slot, address, owner))
        leases = [slot.lend(owner) for slot, _, owner in borrowed]

        def bind() -> None:
            for (slot, address, owner), lease in zip(borrowed, leases, strict=True):
                self.runs.bind_shared(slot, address, owner, lease)
                self.calls.follow(slot)
            self.calls.add_shared([slot for slot, _, _ in borrowed])

        return bind


def _bind(executable: Executable, images: Sequence[LoadedImage | ModuleKernels], memory: ProgramMemory) -> Program:
    """Returns the Program; where copies are allowed, memory that code cannot use in place is taken from the host.

    Binding itself shows which memory code of the host uses, so that it begins again, at most once for each vdevice.
    Without copies allowed, the first error is raised.
    """
    while True:
        try:
            return bind_function(executable.main, executable.vdevices, images, memory)
        except NotDirectError as error:
            if executable.metadata.get(ON_MISMATCH) != "copy":
                raise
            memory.use_host(error.vdevice)


def read_only(tensor: Tensor) -> Tensor:
    """Returns a dense Tensor over the same bytes that nobody may write through."""
    if tensor.readonly:
        return tensor
    return Tensor(
        tensor.storage,
        tensor.dtype,
        tensor.shape,
        None,
        tensor.byte_offset,
        readonly=True,
        axis_separators=tensor.axis_separators,
    )
