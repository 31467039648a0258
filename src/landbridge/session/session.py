"""Session: a compiled program bound to devices, which runs any number of times.

Everything a run needs is decided when the Session is made: a run is one native call over bound memory. Inputs and
outputs bound by reference are used in place and kept alive while bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, overload

import numpy as np

from landbridge.device.api import Device, EventFile
from landbridge.device.fence import Fence
from landbridge.device.protocols import AccessMode
from landbridge.device.state import concerns
from landbridge.device.stream import current_device
from landbridge.errors import BindError, InputError, ShapeError, ZeroCopyError
from landbridge.executable.executable import Executable, is_cut
from landbridge.executable.no_program import no_program
from landbridge.executable.parts import TensorSpec, program_name
from landbridge.memory import ledger
from landbridge.memory.accesses import open_views
from landbridge.memory.allocators.memory_cfg import MemoryCfg
from landbridge.memory.host_array import address_of_known
from landbridge.memory_kind import HostAccess, normalize_host_access
from landbridge.process.exhaustion import raise_exhaustion, reports_exhaustion
from landbridge.process.process_bound import ProcessBound
from landbridge.process.usable_cores import usable_cores
from landbridge.session.fence_waits import sole_device, wait_for
from landbridge.session.given_parameters import GivenParameters, named_values
from landbridge.session.length_checks import LengthChecks
from landbridge.session.session_options import check_no_time_limit, checked_limit, checked_threads
from landbridge.session.state_request import StateRequest
from landbridge.tensor import Tensor
from landbridge.vm.arena import ProgramArena
from landbridge.vm.argument import parameter_tensor
from landbridge.vm.background import AsyncRun
from landbridge.vm.background_runs import BackgroundRuns
from landbridge.vm.bound_program import BoundProgram, read_only
from landbridge.vm.device_binding import bind_devices
from landbridge.vm.entry import Entry, takes_lock
from landbridge.vm.frame import Execute, Frame
from landbridge.vm.host_access import host_access
from landbridge.vm.named import in_order
from landbridge.vm.slot import Slot
from landbridge.vm.slot_names import by_name_and_index, find_slot, find_spec, unknown_keyword, unknown_slot
from landbridge.vm.spares import Spares
from landbridge.vm.thread_pool import is_exiting, thread_count
from landbridge.vm.token_lock import NOBODY

if TYPE_CHECKING:
    from landbridge.session.state import State
    from landbridge.session.state_group import Halves, StateGroup
    from landbridge.vm.planned_memory import PlannedMemory
    from landbridge.vm.resizing import Resizing
    from landbridge.vm.size_fit import SizeFit

_ndarray = np.ndarray
#: The program of a Session without open dimensions.
_MAIN = program_name(0)


class Session(ProcessBound):
    """A Session binds ``executable`` to ``device`` (or ``devices``, by vdevice name) and to ``num_threads`` threads.

    ``device`` None is the current device of the thread, ``cpu:0`` unless ``lb.set_device`` says otherwise.

    ``num_threads`` None uses every core this process may use, by its affinity and the quota of its control group. A
    larger number is reduced to that, with a ThreadCountWarning. A program whose every call is small runs on the calling
    thread alone. ``memory_cfg`` chooses the allocator of each (device, scope), as in ``{("cpu:0", "global"):
    "naive"}``; None leaves that to the process. ``host_access`` is what the host must be able to do in place with
    inputs and outputs that the Session allocates ("read", "write", "read_write", or "r", "w", "rw"); they are then in
    memory that each device of the program uses, at the least cost, as with ``lb.empty`` of several devices. None puts
    them in the memory of the first vdevice, whether the host can access it or not.

    Any number of threads may call a Session. Every other method is for one thread at a time, and another thread gets
    SessionBusyError. Sessions share the constants of their Executable. For a program with open dimensions a Session has
    an instance for each choice of sizes that it meets; these share code, weights and memory.

    ``memory_limit`` is in bytes, from 1 MiB: the most that a run may take for its activations, for each input or output
    that the Session allocates, and for each value whose size data decide. A run whose sizes need more raises
    OutOfMemoryError, which names the tensor, and changes nothing. None allows what is available: of the machine's
    memory, of the process's limit and of its control groups.

    ``time_limit`` is in seconds, more than 0: the most that the caller of any method waits, for a run, a call, a copy
    into or out of the Session. A use that takes longer raises RunTimeoutError, which says what it waits for, and goes
    on in a thread of the Session; until it is over the Session is busy, and the memory that it uses stays alive. None:
    no limit, in the caller's thread.

    Raises BindError or ExecutableError when the program does not fit the devices or this machine.
    """

    _instead: ClassVar[str] = "pickle its executable, or save that to a file, and make a Session where it is used"
    _public_name: ClassVar[str | None] = "Session"

    #: Returns the class for programs that are open or cut where data decide sizes, or with a ``time_limit``. The
    #: package sets it, as those classes import this module.
    #: The device that runs all of the program; None where several do, or the CPU.
    _kernel_device: Device | None = None
    _kind_for: ClassVar[Callable[..., type[Session]] | None] = None

    def __new__(cls, executable: Executable, *args: Any, **kwargs: Any) -> Session:
        """Returns a Session of the class that the program needs.

        A program with open dimensions gets one with an instance for each choice of sizes, and a ``time_limit`` one that
        ends waits.
        """
        if not isinstance(executable, Executable):
            raise no_program(executable)
        limited = kwargs.get("time_limit") is not None
        if cls is Session and (limited or is_cut(executable) or executable.is_open):
            if cls._kind_for is None:
                raise BindError("this program has open dimensions; make its Session as landbridge.Session")
            cls = cls._kind_for(executable, limited=limited)
        return super().__new__(cls)

    @reports_exhaustion("a Session was made")
    def __init__(
        self,
        executable: Executable,
        device: Device | str | None = None,
        *,
        devices: Mapping[str, Device | str] | None = None,
        num_threads: int | None = None,
        memory_cfg: MemoryCfg | None = None,
        host_access: HostAccess | AccessMode | None = None,
        memory_limit: int | None = None,
        time_limit: float | None = None,
        arena: ProgramArena | None = None,
    ) -> None:
        check_no_time_limit(time_limit)
        threads = thread_count(checked_threads(num_threads))
        main = executable.main
        sides = (", ".join(spec.name for spec in specs) for specs in (main.inputs, main.outputs))
        self._entry = entry = Entry(f"Session({' -> '.join(sides)})")
        self._executable = executable
        bindings = bind_devices(executable, current_device() if device is None else device, devices, memory_cfg)
        access = None if host_access is None else normalize_host_access(host_access)
        self._program = program = BoundProgram(
            executable, bindings, threads, entry, access, arena, checked_limit(memory_limit)
        )
        self._kernel_device = sole_device(executable, bindings)
        self._run_frame = frame = program.runs.frame
        self._inputs = by_name_and_index(frame.inputs)
        self._outputs = by_name_and_index(frame.outputs)
        self._parameters = {slot.spec.name: slot for slot in frame.parameters}
        self._background = BackgroundRuns(entry)
        self._given_params = GivenParameters()
        self._spares: Spares[Session] | None = None
        if arena is None:
            self._spares = spares_of(
                executable, entry, self._given_params, device, devices=devices, num_threads=num_threads,
                memory_cfg=memory_cfg, host_access=host_access, memory_limit=memory_limit,
            )  # fmt: skip
        self._complete = False
        # The program as runs see it, read on every call.
        self._execute, self._listed = frame.execute, frame.listed
        self._written: tuple[Slot, ...] = frame.outputs
        self._has_states = False
        self._group: StateGroup | None = None
        #: Of caches whose lengths are values of the run, where no State checks them.
        self._lengths = LengthChecks(_MAIN, executable) or None

    @property
    def executable(self) -> Executable:
        """Returns the Executable that the Session runs."""
        return self._executable

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """Returns the name, shape and dtype of each input, in order, and its strides where they are not dense."""
        return self._executable.main.inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Returns the name, shape and dtype of each output, in order."""
        return self._executable.main.outputs

    @property
    def params(self) -> tuple[TensorSpec, ...]:
        """Returns the name, shape and dtype of each weight that ``set_params`` may replace."""
        return self._executable.main.parameters

    @property
    def planned_memory(self) -> tuple[PlannedMemory, ...]:
        """Returns the bytes that runs need in each scope, besides weights and buffers of the caller."""
        from landbridge.vm.planned_memory import planned_memory

        by_value = [slot.spec for slot in self._run_frame.inputs if slot.owned is not None]
        return planned_memory(self._executable, self._program.memory, self._program.threads, by_value)

    def __repr__(self) -> str:
        return self._entry.name

    def prepare(self, **sizes: int | Sequence[int]) -> None:
        """Make the instances for these sizes of open dimensions, by name, in advance: ``W=[320, 640]``.

        Raises ShapeError for a dimension that the program does not have and for a value that is not legal.
        """
        if sizes:
            raise ShapeError(f"the program has no dimension {next(iter(sizes))!r}; all of its sizes are known")

    @contextmanager
    def hold_scopes(self) -> Iterator[None]:
        """Hold the acquired scopes, where tensors of the program were placed, until the ``with`` ends.

        Runs and calls meanwhile find there what earlier ones left, weights too, and no other thread gets the lock. A
        device may still take a scope away between two runs: the next one loads again what was lost, or raises
        ScopeBusyError. Raises ScopeBusyError, and holds none, while another program has one of them.
        """
        with self._program.hold_scopes():
            yield

    @takes_lock
    def set_input(self, name: str | int, value: Any) -> None:
        """Copy ``value`` to input ``name`` (or index); later writes to ``value`` have no effect.

        ``value`` is an array of any strides, a Tensor, a DLPack producer, a buffer such as ``bytes``, a number or a
        nested list, of the input's shape and dtype; else InputError. The ledger shows the copy, cause ``set_input``.
        """
        slot = find_slot("input", name, self._inputs)
        if self._group is not None:
            self._group.check_settable(slot.spec.name)
        self._program.runs.copy_in(slot, value, "set_input")

    def set_input_zero_copy(self, name: str | int, value: Any) -> None:
        """Bind input ``name`` (or index) to the memory of ``value``: each run reads what is there when it starts.

        ``value`` is an array, Tensor, DLPack producer or buffer (``bytearray``, ``memoryview``, ``mmap``) of the
        input's shape and dtype, C-contiguous, or with the strides in ``inputs`` where an InputSpec declared some; it is
        kept alive while bound. Raises InputError when it
        does not fit or overlaps an output, ZeroCopyError when its memory cannot be used in place; the previous binding
        stays then.
        """
        entry = self._entry
        try:
            token = entry.take()
        except IndexError:
            entry.refuse()
        try:
            entry.owner = get_ident()
            try:
                slot = self._inputs[name]
            except (KeyError, TypeError):
                raise unknown_slot("input", name, self._inputs) from None
            owner: object = value
            if (
                type(value) is slot.array_type
                and value.dtype is slot.dtype
                and value.shape == slot.shape
                and value.flags.carray
            ):
                address = address_of_known(value)
            else:
                address, owner = self._program.runs.borrow(slot, value)
            if slot.partner is not None:
                raise InputError(f"{slot} is a recurrent state, whose memory swaps at each run; use set_input")
            end = address + slot.nbytes
            for other in self._written:
                if (address < other.end and other.address < end) or other.slides is not None:
                    slot.check_no_overlap(address, other, other.address)
            if type(owner) is not _ndarray:
                self._program.runs.bind(slot, address, owner)
                return
            try:
                for word, offset in slot.places:
                    slot.words[word] = address + offset
                slot.address, slot.end, slot.owner, slot.lease = address, end, owner, None
            except BaseException:  # the same as in Slot.bind
                slot.bind(address, owner)
                raise
        finally:
            entry.owner = NOBODY
            entry.give_back(token)
            del token

    @takes_lock
    def register_buffers(self, name: str | int, values: Sequence[Any]) -> None:
        """Prepare ``values``, such as the frame buffers of a camera, to be bound to input or output ``name`` many
        times.

        A device that uses memory of the host in place imports each now, so that later runs import nothing. They are
        kept alive with the Session, or until others are registered for ``name``. Conditions and errors are those of
        ``set_input_zero_copy`` and ``set_output_zero_copy``; when one does not fit, none is registered.
        """
        slots = self._outputs if name in self._outputs and name not in self._inputs else self._inputs
        self._program.runs.buffers.register(find_slot("input or output", name, slots), values)

    @takes_lock
    def get_input(self, name: str | int) -> Tensor:
        """Returns the memory bound to input ``name`` (or index), writable through its host view unless borrowed
        read-only.

        An input with nothing bound gets memory of the Session, zeroed.
        """
        slot = find_slot("input", name, self._inputs)
        return self._program.runs.bind_owned(slot) if slot.owner is None else slot.tensor()

    @takes_lock
    def set_params(self, values: Mapping[str, Any], *, copy: bool = True) -> None:
        """Give weights new values, by their names in the model; the next run uses them.

        Only weights named by ``compile(..., mutable=)`` can be replaced, for this Session alone: the Executable keeps
        its own. Values are copied, as by ``set_input``; the ledger's cause is ``set_params``. Raises InputError when
        one does not fit, and then changes none.

        With ``copy=False`` nothing is copied: weights are bound to the memory of ``values``, as by
        ``set_input_zero_copy``, and each run reads what is there when it starts. Any number of Sessions may share that
        memory, which is kept alive while bound. Raises ZeroCopyError for memory that cannot be used in place, and for a
        weight of which kernels read a packed copy; it names kernel and layout, and none is changed then.
        """
        if not copy:
            self._borrow_params(memory_of_parameters(self.params, values))()
            return
        named = named_values(values).items()
        found = [(find_slot("parameter", name, self._parameters), value) for name, value in named]
        self._program.set_parameters(found)
        self._given_params.note_copies({slot.spec.name: slot.tensor() for slot, _ in found})
        self._forget_spares()

    def _borrow_params(self, values: Mapping[str, Tensor]) -> Callable[[], object]:
        """Returns a function that binds the weights ``values`` in place; raises, and changes nothing, where one cannot
        be.
        """
        change = self._program.borrow_parameters([(self._parameters[name], value) for name, value in values.items()])
        return partial(self._change_params, [change], values)

    def _change_params(self, changes: Sequence[Callable[[], object]], values: Mapping[str, Tensor]) -> None:
        for change in changes:
            change()
        self._given_params.note_bound(values)
        self._forget_spares()

    def _forget_spares(self) -> None:
        if self._spares is not None:
            self._spares.forget()

    @takes_lock
    def get_params(self) -> dict[str, Tensor]:
        """Returns the weights that ``set_params`` may replace, as Tensors over their memory, by name.

        Weights that ``set_params(copy=False)`` bound are the memory of the caller, writable unless it was given
        read-only; what is written there counts from the next run on. All others are read-only, as kernels may read a
        packed copy of them. They also show later values, once ``set_params`` has given the Session memory of its own.
        """
        own = {name: read_only(slot.tensor()) for name, slot in self._parameters.items()}
        return own | self._given_params.bound

    @takes_lock
    def set_output_zero_copy(self, index: int | str, out: Any) -> None:
        """Bind output ``index`` (or name) to the memory of ``out``: the next runs write their results there.

        Conditions and errors are those of ``set_input_zero_copy``; ``out`` must be writable and overlap nothing bound.
        """
        slot, runs = find_slot("output", index, self._outputs), self._program.runs
        address, owner = runs.borrow(slot, out)
        if slot.partner is not None:
            raise InputError(f"{slot} is a recurrent state, whose memory swaps at each run; use get_output")
        runs.check_no_overlap(slot, address, runs.frame.slots)
        runs.bind(slot, address, owner)

    @takes_lock
    def get_output(self, index: int | str, out: Any = None) -> Any:
        """Returns output ``index`` (or name) of the last ``run`` as a Tensor over its own memory, valid until the next
        run.

        With ``out``, an array or Tensor of the output's shape and dtype, the result is copied there and ``out`` is
        returned; the ledger shows the copy, cause ``get_output``.
        """
        slot = find_slot("output", index, self._outputs)
        holder = slot.partner or slot  # a state's last value is where the next run reads it
        if holder.owner is None:
            raise InputError(
                f"{slot} has no memory yet; call run(), or bind some with set_output_zero_copy; session.outputs has "
                "shapes and dtypes before that"
            )
        result = holder.tensor()
        if out is None:
            return result
        self._program.runs.copy_out(slot, result, out)
        return out

    def run(self) -> None:
        """Run the program on what is bound. Unbound outputs get memory of the Session at the first run.

        Raises InputError that names the inputs without a binding.
        """
        entry = self._entry
        try:
            token = entry.take()
        except IndexError:
            entry.refuse()
        try:
            entry.owner = get_ident()
            if not self._complete:
                self._program.runs.complete()
                self._complete = True
            if concerns[0]:
                self._run_frame.wait_queued()
            if self._group is not None:
                self._group.begin(_MAIN, {}, self._bound_value)
            elif self._lengths is not None:
                self._lengths.check(self._bound_value)
            execute = self._execute
            if self._listed is not None and ledger.is_active():
                execute = self._listed
            if entry.shares:
                checked = partial(_execute_checked, self._run_frame, execute, self._program.runs.check_views)
                entry.in_order(self._run_frame.orders(), checked)
            else:
                if open_views:
                    self._program.runs.check_views()
                execute()
            if self._has_states:
                self._end_step()
        except Exception as error:
            raise_exhaustion(error, "a run was under way")
            raise
        finally:
            entry.owner = NOBODY
            entry.give_back(token)
            del token

    def _bound_value(self, name: str) -> Any:
        """Returns what is bound to input ``name`` for runs."""
        return self._inputs[name].tensor()

    def _end_step(self) -> None:
        """Let the next run read what this one wrote, and note how many steps there are."""
        self._program.states.swap()
        if self._group is not None:
            self._group.commit()

    def wait_for(self, fence: Fence | EventFile | int) -> None:
        """Let the next run use what is bound once ``fence`` is signalled: a Fence, a file descriptor (a sync file, an
        eventfd), or what has ``fileno()``.

        Returns at once where one device runs the program and waits for such files in its queue (``ExternalFences``);
        the runs of this thread's current stream come after the fence. Else waits here, interruptibly. All inputs must
        be bound, those that the fence is for without a copy. Raises InputError for what is no fence and for inputs
        without a binding, DeviceError for a fence that failed.
        """
        if self._kernel_device is not None:
            self._bind_before_fence()
        wait_for(self._kernel_device, fence)

    @takes_lock
    def _bind_before_fence(self) -> None:
        """Bind what the next run would: the host's access to new memory would wait for the queue, and that for the
        fence.
        """
        self._make_ready()

    def run_async(self) -> AsyncRun:
        """Start a run on what is bound and return at once; ``wait(timeout)`` of the result waits for its end.

        Until then what is bound stays alive, host views of the bound Tensors wait for the run where they must, and
        every other method of this Session raises SessionBusyError. Raises as ``run`` does, before it starts; ``wait``
        raises what the run itself raises.
        """
        return self._background.start(self._make_ready, self._execute_in_background)

    def _make_ready(self) -> None:
        if not self._complete:
            self._program.runs.complete()
            self._complete = True
        self._run_frame.wait_queued()
        if self._group is not None:
            self._group.begin(_MAIN, {}, self._bound_value)
        elif self._lengths is not None:
            self._lengths.check(self._bound_value)
        if open_views:
            self._program.runs.check_views()

    def _execute_in_background(self, begun: Callable[[], object]) -> None:
        execute = self._execute
        if self._listed is not None and ledger.is_active():
            execute = self._listed
        if self._entry.shares:
            checked = partial(_execute_checked, self._run_frame, execute, self._program.runs.check_views, begun)
            self._entry.in_order(self._run_frame.orders(), checked)
        else:
            execute()
        if self._has_states:
            self._end_step()

    def __call__(self, *arrays: Any, out: Any = None, **unknown: NoReturn) -> Any:
        """Run the program on ``arrays``, by reference for this call; returns new Tensors, or what ``out`` lists.

        Pass one array for each input and one of ``out`` for each output, in order, without recurrent states; or one
        mapping of all inputs by name, ``session({"x": X})``, which returns outputs by name. Later runs never overwrite
        returned Tensors; what ``run`` has bound stays bound. Conditions and errors are those of ``set_input_zero_copy``
        and ``set_output_zero_copy``.

        Any number of threads may call at the same time: a call that comes while the Session is in use runs in a further
        instance over the same weights. There are as many as this process has processors; then calls wait.
        """
        if unknown:
            raise unknown_keyword(next(iter(unknown)), [spec.name for spec in self.inputs])
        entry = self._entry
        try:
            token = entry.take()
        except IndexError:
            return self._call_a_spare(arrays, out)
        try:
            entry.owner = get_ident()
            program = self._program
            calls = program.calls
            names = None
            try:
                keep = calls.bind_inputs(arrays)
            except (InputError, ZeroCopyError):
                if len(arrays) != 1 or not isinstance(arrays[0], Mapping):
                    raise
                names = [slot.spec.name for slot in calls.outputs]
                arrays = in_order("input", arrays[0], [slot.spec.name for slot in calls.inputs])
                out = in_order("output", out, names) if isinstance(out, Mapping) else out
                keep = calls.bind_inputs(arrays)
            if out is None:
                results: list[Any] = calls.new_outputs()
            else:
                results = list(out)
                keep = (*keep, *calls.bind_outputs(results))
            if self._has_states:
                if concerns[0]:
                    calls.frame.wait_queued()
                program.states.check_call()
                if self._group is not None:
                    given = dict(zip([slot.spec.name for slot in calls.inputs], arrays, strict=True))
                    self._group.begin(_MAIN, {}, given.__getitem__)
            if self._lengths is not None and self._group is None:
                given = dict(zip([slot.spec.name for slot in calls.inputs], arrays, strict=True))
                self._lengths.check(given.__getitem__)
            execute = calls.frame.execute
            if calls.frame.listed is not None and ledger.is_active():
                execute = calls.frame.listed
            if entry.shares:
                checked = partial(_execute_checked, calls.frame, execute, partial(calls.check_views, arrays, results))
                entry.in_order(calls.frame.orders(), checked)
            else:
                if open_views:
                    calls.check_views(arrays, results)
                execute()
            if self._has_states:
                self._end_step()
            if keep:  # alive until here
                del keep
                calls.release()
            return results if names is None else dict(zip(names, results, strict=True))
        except Exception as error:
            raise_exhaustion(error, "a run was under way")
            raise
        finally:
            entry.owner = NOBODY
            entry.give_back(token)
            del token

    def _call_a_spare(self, arrays: Sequence[Any], out: Any) -> Any:
        """Returns the results of a call while another thread holds the lock; raises why where no instance can
        run it.
        """
        if is_exiting() or self._entry.pending is not None or self._has_states or self._spares is None:
            self._entry.refuse()
        spare = self._spares.take()
        try:
            return spare(*arrays, out=out)
        finally:
            self._spares.give_back(spare)

    @overload
    def bind_state(self, output: str | int, input: str | int) -> None: ...
    @overload
    def bind_state(
        self,
        output: Mapping[str, str] | None = None,
        *,
        capacity: int | None = None,
        memory: Mapping[str, Any] | None = None,
        length: int | None = None,
    ) -> State: ...
    def bind_state(
        self,
        output: str | int | Mapping[str, str] | None = None,
        input: str | int | None = None,
        *,
        capacity: int | None = None,
        memory: Mapping[str, Any] | None = None,
        length: int | None = None,
    ) -> State | None:
        """Make outputs of each run the inputs of the next, without a copy.

        ``bind_state()`` and ``bind_state({"present": "past"})`` return a State, which runs continue from then on: of
        all outputs that are the next value of an input, by the aliases that the program declares and by their names, or
        of those listed. ``capacity`` is the number of steps that it has memory for, where the program leaves it open;
        the memory begins as zeros, without steps. Called again it makes a further State, of the same outputs. Inputs
        that say how many steps there are get that from the State. Raises InputError where nothing is found, which lists
        inputs and outputs, and where two halves differ.

        ``memory`` is memory of the application, by the name of the input: arrays, Tensors, DLPack producers or buffers
        that may be written, C-contiguous, of the host, or of the device that runs the program: Tensors of it, or host
        memory that it imports. Runs read and write it in place; it is kept alive, and nothing
        is copied or zeroed. ``length`` of its steps are filled. A state that is not updated in place has two, in a
        tuple: what is read first, and what is written first. Raises InputError for one that does not fit or shares
        bytes with another, ZeroCopyError for one that cannot be used in place; nothing has changed then.

        ``bind_state("h_out", "h_in")`` makes ``output`` of each run the ``input`` of the next, and returns None. They
        are one memory where the program declares them an alias (``compile(alias=)``), else two buffers that swap. The
        state starts with the input's value if it has one, else with zeros; ``set_input`` sets it, ``get_output`` reads
        it. Raises InputError when shapes or dtypes differ or one of them is a state already. With open dimensions, runs
        of other sizes carry the state on, and raise InputError where its shape differs then.
        """
        if output is None or isinstance(output, Mapping):
            if input is not None:
                raise InputError(
                    f"bind_state takes names of inputs by output, or an output and an input, not {input!r}"
                )
            return self._bind_states(StateRequest(output, capacity, memory, length))
        if input is None or any(option is not None for option in (capacity, memory, length)):
            raise InputError(
                f"bind_state({output!r}, {input!r}) takes an output and an input, and no capacity; "
                f"bind_state({{{output!r}: 'past'}}, capacity=) makes a State of them"
            )
        self._bind_pair(output, input)
        return None

    @takes_lock
    def _bind_pair(self, output: str | int, input: str | int) -> None:
        program = self._program
        if self._group is not None:
            self._group.refuse_pairs()
        try:
            program.states.bind(find_slot("output", output, self._outputs), find_slot("input", input, self._inputs))
        finally:
            self._note_states()

    @takes_lock
    def _bind_states(self, request: StateRequest) -> State:
        from landbridge.session.program_states import ProgramStates
        from landbridge.session.state_binding import first_state, further_state

        states, bound = self._program.states, {}
        slots = (*self._run_frame.inputs, *self._run_frame.outputs)
        places = {slot.spec.name: slot.binding for slot in slots if slot.binding is not None}
        if request.memory is not None:
            states.check_used_in_place()
            bound = {slot.spec.name: slot.tensor() for slot in slots if slot.owner is not None and slot.partner is None}
        if self._group is not None:
            return further_state(self._group, self._executable, request, bound, places)

        def bind(
            specs: Sequence[tuple[TensorSpec, TensorSpec]], memory: Sequence[Halves] | None, sizes: Mapping[str, int]
        ) -> None:
            pairs = [(self._outputs[output.name], self._inputs[input.name]) for output, input in specs]
            try:
                states.bind_all(pairs, memory)
            finally:
                self._note_states()

        state, self._group = first_state(
            self._executable, self._entry, ProgramStates(states), request, states.pairs, bound, places, bind
        )
        return state

    def _note_states(self) -> None:
        states = self._program.states
        self._has_states = bool(states.pairs)
        self._written = (*self._run_frame.outputs, *(half for _, half in states.pairs))


def spares_of(
    executable: Executable, entry: Entry, params: GivenParameters, *args: Any, num_threads: int | None, **kwargs: Any
) -> Spares[Session]:
    """Returns further Sessions of ``executable`` for calls that come while the one with ``entry`` and ``params`` is in
    use.

    Together they use the processors that this process may run on, each ``num_threads`` or one.
    """

    def make() -> Session:
        created = Session(executable, *args, num_threads=threads, **kwargs)
        created._spares = None
        if created.params:  # else it need not wait for a thread that runs again and again, whose lock is rarely free
            with entry.waited_for():
                params.give(created)
        return created

    threads = num_threads or 1
    return Spares(make, lambda: usable_cores() // threads)


def memory_of_parameters(specs: Sequence[TensorSpec], values: Mapping[str, Any]) -> dict[str, Tensor]:
    """Returns Tensors over the memory of ``values``, by name; raises InputError for a name that is not in ``specs``,
    and InputError and ZeroCopyError for memory that cannot be one of them.
    """
    named = [(find_spec("parameter", name, specs), value) for name, value in named_values(values).items()]
    return {spec.name: parameter_tensor(spec, value) for spec, value in named}


def borrow_params(session: Session, values: Mapping[str, Tensor]) -> Callable[[], object]:
    """Returns a function that binds the weights ``values`` of ``session`` in place; raises, and changes nothing, where
    one cannot be.
    """
    return session._borrow_params(values)


def bound_program_of(session: Session) -> BoundProgram:
    """Returns the BoundProgram that ``session`` executes."""
    return session._program


def set_owned_input(session: Session, name: str, array: np.ndarray[Any, Any]) -> None:
    """Bind input ``name`` of ``session`` to ``array``, which nobody writes: in place where the input is host memory."""
    if is_read_in_place(session, name):
        session.set_input_zero_copy(name, array)
    else:
        session.set_input(name, array)


def is_read_in_place(session: Session, name: str) -> bool:
    """Returns whether runs of ``session`` read input ``name`` where the host has it."""
    return session._inputs[name].binding is None


def has_binding(session: Session, name: str, *, of_output: bool = False) -> bool:
    """Returns whether input, or output, ``name`` of ``session`` is bound for runs."""
    return (session._outputs if of_output else session._inputs)[name].owner is not None


def let_calls_go(session: Session) -> None:
    """Release what the last call of ``session`` was given or returned."""
    session._program.calls.release()


def let_results_go(session: Session) -> None:
    """Release the memory of results of ``session``: what a call returned, and what runs write.

    The next run allocates new memory.
    """
    let_calls_go(session)
    session._program.runs.let_outputs_go()
    session._complete = False


def resize_runs(session: Session, resizing: Resizing, fit: SizeFit, before: SizeFit | None) -> None:
    """Resize runs of ``session`` to ``fit`` from ``before``; None: from any sizes. What is bound to inputs and outputs
    of other sizes is unbound, except recurrent states.
    """
    runs = session._program.runs
    if before is not None and fit.has_io_of(before):
        resizing.set_words(runs.frame, fit, before)
    else:
        changed = resizing.changes(runs.frame, fit)
        runs.release_for_resize(changed)
        session._program.states.resize_runs(partial(resizing.resize, runs.frame, fit, changed))
        session._complete = False
    session._execute, session._listed = runs.frame.execute, runs.frame.listed


def resize_calls(session: Session, resizing: Resizing, fit: SizeFit, before: SizeFit | None) -> None:
    """Resize calls of ``session`` to ``fit`` from ``before``, as ``resize_runs`` does."""
    frame = session._program.calls.frame
    if before is not None and fit.has_io_of(before):
        resizing.set_words(frame, fit, before)
        return
    session._program.states.resize_calls(partial(resizing.resize, frame, fit, resizing.changes(frame, fit)))


def is_complete(session: Session) -> bool:
    """Returns whether all inputs and outputs of ``session`` are bound for the next run."""
    return session._complete


def take_states(session: Session, specs: Sequence[TensorSpec], memory: Sequence[Halves] | None = None) -> None:
    """Resize the recurrent states of ``session`` to ``specs``, in order; those of other shapes become zeros.

    With ``memory``, of these shapes, they are bound to that.
    """
    session._program.states.take(specs, memory)


def slide_states(session: Session, sizes: Mapping[str, int]) -> None:
    """Slide windows among the states of ``session`` by what a run with ``sizes`` writes, dimensions by name."""
    session._program.states.slide_at(sizes)


def state_memory(session: Session) -> tuple[Halves, ...]:
    """Returns what runs of ``session`` write and read of each state."""
    return session._program.states.memory()


def allocate_state(session: Session, number: int, shape: Sequence[int]) -> Halves:
    """Returns new memory of ``shape``, zeroed, for state ``number`` of ``session``."""
    return session._program.states.allocate(number, shape)


def has_no_memory(session: Session, output: str, input: str) -> bool:
    """Returns whether runs of ``session`` have no memory yet for ``output`` and ``input``, neither bound nor owned."""
    halves = find_slot("output", output, session._outputs), find_slot("input", input, session._inputs)
    return all(half.owner is None and half.owned is None for half in halves)


def may_take_state(session: Session, number: int, memory: Halves) -> bool:
    """Returns whether state ``number`` of ``session`` may be bound to ``memory`` in place."""
    return session._program.states.may_take(number, memory)


def adopt_state(session: Session, holder: Session, number: int) -> bool:
    """Move state ``number`` of ``session`` to its memory in ``holder``, with its values; returns whether it could."""
    return session._program.states.adopt(holder._program.states, number)


def _execute_checked(
    frame: Frame, execute: Execute, check_views: Callable[[], object], begun: Callable[[], object] | None = None
) -> None:
    """Execute while no other Session that shares memory bound to ``frame`` does; calls ``begun`` when it starts."""
    if begun is not None:
        begun()
    if open_views:
        check_views()
    with host_access(frame.slots):
        execute()
