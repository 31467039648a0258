"""Session: a compiled program bound to devices, which runs any number of times.

A Session is the lock and the methods that users call; an Executor, one for each form of program, does the work.
Everything a run needs is decided when the Session is made: a run is one native call over bound memory. Inputs and
outputs bound by reference are used in place and kept alive while bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import get_ident
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, overload

from landbridge.device.api import Device, EventFile
from landbridge.device.fence import Fence
from landbridge.device.protocols import AccessMode
from landbridge.errors import InputError
from landbridge.executable.executable import Executable
from landbridge.executable.no_program import no_program
from landbridge.executable.parts import TensorSpec
from landbridge.memory.allocators.memory_cfg import MemoryCfg
from landbridge.memory_kind import HostAccess
from landbridge.process.exhaustion import raise_exhaustion, reports_exhaustion
from landbridge.process.garbage import collector_paused
from landbridge.process.process_bound import ProcessBound
from landbridge.process.usable_cores import usable_cores
from landbridge.session.executor import Executor
from landbridge.session.executors import executor_of
from landbridge.session.fence_waits import wait_for
from landbridge.session.given_parameters import GivenParameters, memory_of_parameters
from landbridge.session.session_options import BindOptions, check_no_time_limit, checked_options
from landbridge.session.state_request import StateRequest
from landbridge.tensor import Tensor
from landbridge.vm.background import AsyncRun
from landbridge.vm.background_runs import BackgroundRuns
from landbridge.vm.entry import Entry, takes_lock
from landbridge.vm.slot_names import unknown_keyword
from landbridge.vm.spares import Spares
from landbridge.vm.thread_pool import is_exiting
from landbridge.vm.token_lock import NOBODY

if TYPE_CHECKING:
    from landbridge.session.replacement import Replacement
    from landbridge.session.state import State
    from landbridge.vm.planned_memory import PlannedMemory


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
    #: Returns the class of Sessions with a ``time_limit``. The package sets it, as that class is a Session.
    _limited: ClassVar[Callable[[], type[Session]] | None] = None

    def __new__(cls, executable: Executable, *args: Any, **kwargs: Any) -> Session:
        """Returns a Session, of the class whose uses end in time where there is a ``time_limit``."""
        if not isinstance(executable, Executable):
            raise no_program(executable)
        if cls is Session and cls._limited is not None and kwargs.get("time_limit") is not None:
            cls = cls._limited()
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
    ) -> None:
        check_no_time_limit(time_limit)
        options = checked_options(device, devices, num_threads, memory_cfg, host_access, memory_limit)
        main = executable.main
        sides = (", ".join(spec.name for spec in specs) for specs in (main.inputs, main.outputs))
        self._entry = entry = Entry(f"Session({' -> '.join(sides)})")
        self._executable, self._options, self._given_params = executable, options, GivenParameters()
        self._executor: Executor
        if executable.replacement is None:
            with collector_paused():
                self._executor = executor_of(executable, entry, options, self._given_params)
        else:
            from landbridge.session.first_executor import FirstExecutor  # few programs have a replacement

            self._executor = FirstExecutor(executable, entry, options, self._given_params, self, _exchange)
        self._background = BackgroundRuns(entry)
        #: Further Sessions for calls that come while this one is used; None for those themselves.
        self._spares: Spares[Session] | None = _spares_of(executable, entry, self._given_params, options)

    def __repr__(self) -> str:
        return self._entry.name

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
        return self._executor.planned_memory

    @takes_lock
    def prepare(self, **sizes: int | Sequence[int]) -> None:
        """Make the instances for these sizes of open dimensions, by name, in advance: ``W=[320, 640]``.

        Raises ShapeError for a dimension that the program does not have and for a value that is not legal.
        """
        self._executor.prepare(sizes)

    @contextmanager
    def hold_scopes(self) -> Iterator[None]:
        """Hold the acquired scopes, where tensors of the program were placed, until the ``with`` ends.

        Runs and calls meanwhile find there what earlier ones left, weights too, and no other thread gets the lock. A
        device may still take a scope away between two runs: the next one loads again what was lost, or raises
        ScopeBusyError. Raises ScopeBusyError, and holds none, while another program has one of them.
        """
        with self._executor.hold_scopes():
            yield

    # What is bound ----------------------------------------------------------------------------------------------

    @takes_lock
    def set_input(self, name: str | int, value: Any) -> None:
        """Copy ``value`` to input ``name`` (or index); later writes to ``value`` have no effect.

        ``value`` is an array of any strides, a Tensor, a DLPack producer, a buffer such as ``bytes``, a number or a
        nested list, of the input's shape and dtype; else InputError. The ledger shows the copy, cause ``set_input``.
        """
        self._executor.set_input(name, value)

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
            self._executor.set_input_zero_copy(name, value)
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
        self._executor.register_buffers(name, values)

    @takes_lock
    def get_input(self, name: str | int) -> Tensor:
        """Returns the memory bound to input ``name`` (or index), writable through its host view unless borrowed
        read-only.

        An input with nothing bound gets memory of the Session, zeroed.
        """
        return self._executor.get_input(name)

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
        if copy:
            self._given_params.note_copies(self._executor.set_params(values))
            self._forget_spares()
        else:
            self._borrow_params(memory_of_parameters(self.params, values))()

    def _borrow_params(self, values: Mapping[str, Tensor]) -> Callable[[], object]:
        """Returns a function that binds the weights ``values`` in place; raises, and changes nothing, where one cannot
        be.
        """
        bind = self._executor.borrow_params(values)

        def bind_and_note() -> None:
            bind()
            self._given_params.note_bound(values)
            self._forget_spares()

        return bind_and_note

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
        return self._executor.get_params() | self._given_params.bound

    @takes_lock
    def set_output_zero_copy(self, index: int | str, out: Any) -> None:
        """Bind output ``index`` (or name) to the memory of ``out``: the next runs write their results there.

        Conditions and errors are those of ``set_input_zero_copy``; ``out`` must be writable and overlap nothing bound.
        """
        self._executor.set_output_zero_copy(index, out)

    @takes_lock
    def get_output(self, index: int | str, out: Any = None) -> Any:
        """Returns output ``index`` (or name) of the last ``run`` as a Tensor over its own memory, valid until the next
        run.

        With ``out``, an array or Tensor of the output's shape and dtype, the result is copied there and ``out`` is
        returned; the ledger shows the copy, cause ``get_output``.
        """
        return self._executor.get_output(index, out)

    # Runs -------------------------------------------------------------------------------------------------------

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
            self._executor.run()
        except Exception as error:
            raise_exhaustion(error, "a run was under way")
            raise
        finally:
            entry.owner = NOBODY
            entry.give_back(token)
            del token

    def wait_for(self, fence: Fence | EventFile | int) -> None:
        """Let the next run use what is bound once ``fence`` is signalled: a Fence, a file descriptor (a sync file, an
        eventfd), or what has ``fileno()``.

        Returns at once where one device runs the program and waits for such files in its queue (``ExternalFences``);
        the runs of this thread's current stream come after the fence. Else waits here, interruptibly. All inputs must
        be bound, those that the fence is for without a copy. Raises InputError for what is no fence and for inputs
        without a binding, DeviceError for a fence that failed.
        """
        device = self._executor.kernel_device
        if device is not None:
            self._bind_before_fence()
        wait_for(device, fence)

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
        return self._background.start(self._make_ready, self._execute)

    def _make_ready(self) -> None:
        self._executor.make_ready()

    def _execute(self, begun: Callable[[], object]) -> None:
        self._executor.execute(begun)

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
            return self._executor.call(arrays, out)
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
        if is_exiting() or self._entry.pending is not None or self._executor.has_states or self._spares is None:
            self._entry.refuse()
        spare = self._spares.take()
        try:
            return spare(*arrays, out=out)
        finally:
            self._spares.give_back(spare)

    # States -----------------------------------------------------------------------------------------------------

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

    def _replace(self, replacement: Replacement) -> None:
        """Work with ``replacement`` from now on; the caller holds the lock. Nothing has changed where it raises."""
        replacement.continue_from(self._executor, self._given_params)
        self._executable, self._executor = replacement.executable, replacement.executor
        self._given_params = replacement.params
        if self._spares is not None:
            self._spares = _spares_of(self._executable, self._entry, self._given_params, self._options)

    @takes_lock
    def _bind_pair(self, output: str | int, input: str | int) -> None:
        self._executor.bind_pair(output, input)

    @takes_lock
    def _bind_states(self, request: StateRequest) -> State:
        return self._executor.bind_states(request)


def _spares_of(executable: Executable, entry: Entry, params: GivenParameters, options: BindOptions) -> Spares[Session]:
    """Returns further Sessions of ``executable`` for calls that come while the one with ``entry`` and ``params`` is in
    use.

    Together they use the processors that this process may run on, each ``options.num_threads`` or one.
    """
    threads = options.num_threads or 1

    def make() -> Session:
        created = Session(
            executable, options.device, devices=options.devices, num_threads=threads, memory_cfg=options.memory_cfg,
            host_access=options.host_access, memory_limit=options.memory_limit,
        )  # fmt: skip
        created._spares = None
        if created.params:  # else it need not wait for a thread that runs again and again, whose lock is rarely free
            with entry.waited_for():
                if params.copied:
                    created.set_params(params.copied)
                if params.bound:
                    created.set_params(params.bound, copy=False)
        return created

    return Spares(make, lambda: usable_cores() // threads)


def _exchange(session: Session, executable: Executable) -> Executor:
    """Lets ``session``, whose lock the caller holds, work with ``executable``; returns its Executor. Raises as
    ``replace``.
    """
    session._replace(prepared_replacement(session, executable))
    return session._executor


def prepared_replacement(session: Session, executable: Executable) -> Replacement:
    """Returns an executor of ``executable``, another compile of the program that ``session`` runs, for ``replace``.

    This takes as long as making a Session, and may be done in any thread while ``session`` is in use. Raises as
    Replacement.
    """
    from landbridge.session.replacement import Replacement

    return Replacement(session._executable, executable, session._entry, session._options)


def replace(session: Session, replacement: Replacement) -> None:
    """Let ``session`` work with ``replacement``, which is used once, from its next run on: with what is bound, the
    weights, the states and the results of the last run.

    Waits until a use that is under way is over; ``run`` of another thread raises SessionBusyError meanwhile. Instances
    for sizes that were prepared are made again by the next run of each, and registered buffers are registered no more.
    Raises BindError where the programs differ in form or memory, and what binding raises; nothing has changed then.
    """
    with session._entry.waited_for():
        session._replace(replacement)


def borrow_params(session: Session, values: Mapping[str, Tensor]) -> Callable[[], object]:
    """Returns a function that binds the weights ``values`` of ``session`` in place; raises, and changes nothing, where
    one cannot be.
    """
    return session._borrow_params(values)
