"""LimitedSession: a Session whose uses return to the caller after a time limit, and go on in a thread of their own."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from landbridge.device.api import EventFile
from landbridge.device.fence import Fence
from landbridge.device.stream import carried
from landbridge.device.waits import Waits
from landbridge.errors import InputError, RunTimeoutError, SessionBusyError
from landbridge.executable.executable import Executable
from landbridge.executable.parts import TensorSpec
from landbridge.session.session import Session, borrow_params
from landbridge.tensor import Tensor
from landbridge.vm.background import AsyncRun, Worker
from landbridge.vm.thread_pool import is_exiting

if TYPE_CHECKING:
    from landbridge.session.state import State
    from landbridge.session.state_request import StateRequest
    from landbridge.vm.planned_memory import PlannedMemory

_T = TypeVar("_T")

_WAY_OUT = (
    "give it more time, or look at the device; where that will never answer, make its Sessions and tensors again after "
    "Device.reopen(), or in a new process"
)


class LimitedSession(Session):
    """A Session whose uses block the caller for ``time_limit`` seconds at most; made by ``landbridge.Session``.

    Another Session, without a limit, does each use in a thread: when a device does not answer, that thread waits, with
    the Session's lock and all that the use was given.
    """

    def __init__(self, executable: Executable, *args: Any, time_limit: float, **kwargs: Any) -> None:
        self._limit = checked_time_limit(time_limit)
        self._inner = Session(executable, *args, **kwargs)
        self._process = os.getpid()
        self._idle: list[Worker] = []
        #: Uses that exceeded the limit; each removes itself when it is over.
        self._late: dict[_Use, None] = {}

    def _do(self, subject: str, action: Callable[[], _T], waits: Waits | None = None) -> _T:
        """Returns the result of ``action`` within the limit, else raises RunTimeoutError; SessionBusyError while one is
        late.
        """
        if is_exiting() or os.getpid() != self._process:  # no thread can start then, and the Session raises that
            return action()
        for late in tuple(self._late):
            if not late.over.is_set():
                late.refuse()
        try:
            worker = self._idle.pop()
        except IndexError:
            worker = Worker(f"{self._inner!r} time_limit")
        results: list[_T] = []
        use = _Use(f"{subject} of {self._inner!r}", waits or Waits())
        there = carried(lambda: results.append(action()))
        try:
            worker.submit(partial(self._finish, use, there, worker))
            over = use.over.wait(self._limit)
        finally:
            if not use.over.is_set():
                self._late[use] = None
                if use.over.is_set():
                    self._late.pop(use, None)
        if not over:
            use.time_out(self._limit)
        try:
            if use.error is not None:
                raise use.error
        finally:
            use.error = None  # its traceback refers to this frame
        return results.pop()

    def _finish(self, use: _Use, action: Callable[[], object], worker: Worker) -> None:
        """Do ``action`` in the worker, and free the Session for the next use."""
        try:
            with use.waits.watched():
                action()
        except BaseException as error:
            use.error = error
        finally:
            self._idle.append(worker)
            use.over.set()
            self._late.pop(use, None)

    # What needs no device ----------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return repr(self._inner)

    @property
    def executable(self) -> Executable:
        return self._inner.executable

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        return self._inner.inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        return self._inner.outputs

    @property
    def params(self) -> tuple[TensorSpec, ...]:
        return self._inner.params

    @property
    def planned_memory(self) -> tuple[PlannedMemory, ...]:
        return self._inner.planned_memory

    # Uses -------------------------------------------------------------------------------------------------------

    def prepare(self, **sizes: int | Sequence[int]) -> None:
        self._do("prepare", lambda: self._inner.prepare(**sizes))

    @contextmanager
    def hold_scopes(self) -> Iterator[None]:
        with self._inner.hold_scopes():  # its end must not be left to another thread
            yield

    def set_input(self, name: str | int, value: Any) -> None:
        self._do("set_input", lambda: self._inner.set_input(name, value))

    def set_input_zero_copy(self, name: str | int, value: Any) -> None:
        self._do("set_input_zero_copy", lambda: self._inner.set_input_zero_copy(name, value))

    def register_buffers(self, name: str | int, values: Sequence[Any]) -> None:
        self._do("register_buffers", lambda: self._inner.register_buffers(name, values))

    def get_input(self, name: str | int) -> Tensor:
        return self._do("get_input", lambda: self._inner.get_input(name))

    def set_params(self, values: Mapping[str, Any], *, copy: bool = True) -> None:
        self._do("set_params", lambda: self._inner.set_params(values, copy=copy))

    def _borrow_params(self, values: Mapping[str, Tensor]) -> Callable[[], object]:
        return self._do("set_params", lambda: borrow_params(self._inner, values))

    def get_params(self) -> dict[str, Tensor]:
        return self._do("get_params", self._inner.get_params)

    def set_output_zero_copy(self, index: int | str, out: Any) -> None:
        self._do("set_output_zero_copy", lambda: self._inner.set_output_zero_copy(index, out))

    def get_output(self, index: int | str, out: Any = None) -> Any:
        return self._do("get_output", lambda: self._inner.get_output(index, out))

    def run(self) -> None:
        self._do("run", self._inner.run)

    def wait_for(self, fence: Fence | EventFile | int) -> None:
        self._do("wait_for", lambda: self._inner.wait_for(fence))

    def run_async(self) -> AsyncRun:
        waits = Waits()
        started = self._do("run_async", self._inner.run_async, waits)
        started.limit(self._limit, waits)
        return started

    def __call__(self, *arrays: Any, out: Any = None, **unknown: NoReturn) -> Any:
        return self._do("a call", lambda: self._inner(*arrays, out=out, **unknown))

    def _bind_pair(self, output: str | int, input: str | int) -> None:
        self._do("bind_state", lambda: self._inner.bind_state(output, input))

    def _bind_states(self, request: StateRequest) -> State:
        return self._do("bind_state", lambda: self._inner._bind_states(request))


class _Use:
    """One use, called ``subject`` in messages, with its waits; ``error`` is what it raised, once it is ``over``."""

    def __init__(self, subject: str, waits: Waits) -> None:
        self.subject, self.waits = subject, waits
        self.over = threading.Event()
        self.error: BaseException | None = None

    def time_out(self, limit: float) -> NoReturn:
        """Raises RunTimeoutError, as the caller's ``limit`` is over."""
        raise RunTimeoutError(
            f"{self.subject} is not over after {limit} s (time_limit= of the Session): it waits for {self.waits}. It "
            "goes "
            f"on, the Session is busy until it is over, and what it was given stays in use; {_WAY_OUT}"
        )

    def refuse(self) -> NoReturn:
        """Raises SessionBusyError, as this use is still running."""
        raise SessionBusyError(
            f"{self.subject}, whose caller waits no longer, is not over yet: it waits for {self.waits}; {_WAY_OUT}"
        )


def checked_time_limit(limit: object) -> float:
    """Returns ``limit`` in seconds; raises InputError unless it is a legal ``time_limit``."""
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 < limit <= threading.TIMEOUT_MAX:
        raise InputError(f"time_limit is {limit!r}; legal: None, or seconds, more than 0")
    return float(limit)
