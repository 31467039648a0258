"""LimitedSession: a Session whose uses return to the caller after a time limit, and go on in a thread of their own."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, NoReturn, ParamSpec, TypeVar, cast

from landbridge.device.stream import carried
from landbridge.device.waits import Waits
from landbridge.errors import InputError, RunTimeoutError, SessionBusyError
from landbridge.executable.executable import Executable
from landbridge.session.session import Session
from landbridge.vm.background import AsyncRun, Worker
from landbridge.vm.completion import Completion
from landbridge.vm.thread_pool import is_exiting

_P = ParamSpec("_P")
_T = TypeVar("_T")

_WAY_OUT = (
    "give it more time, or look at the device; where that will never answer, make its Sessions and tensors again after "
    "Device.reopen(), or in a new process"
)


def _within_limit(use: Callable[_P, _T], subject: str | None = None) -> Callable[_P, _T]:
    """Returns the method ``use`` of Session for a LimitedSession; messages call it ``subject``, or by its name."""
    name = subject or use.__name__

    @wraps(use)
    def limited(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        session: Any = args[0]
        return cast(_T, session._do(name, partial(use, *args, **kwargs)))

    return limited


class LimitedSession(Session):
    """A Session whose uses block the caller for ``time_limit`` seconds at most; made by ``landbridge.Session``.

    Each use is done in a thread. When a device does not answer, that thread waits, with the Session's lock and all that
    the use was given. ``hold_scopes`` has no limit, as its end must not be left to another thread.
    """

    def __init__(self, executable: Executable, *args: Any, time_limit: float, **kwargs: Any) -> None:
        self._limit = checked_time_limit(time_limit)
        self._process = os.getpid()
        self._idle: list[Worker] = []
        #: Uses that exceeded the limit; each removes itself when it is over.
        self._late: dict[_Use, None] = {}
        super().__init__(executable, *args, **kwargs)

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
            worker = Worker(f"{self!r} time_limit")
        results: list[_T] = []
        use = _Use(f"{subject} of {self!r}", waits or Waits())
        there = [
            carried(lambda: results.append(action()))
        ]  # whoever pops it has the use, whatever interrupts the other
        has_waited = False
        try:
            worker.submit(partial(self._finish, use, there, worker))
            over = use.over.wait(self._limit)
            has_waited = True
        finally:
            if not use.over.is_set() and (has_waited or _popped(there) is None):
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

    def _finish(self, use: _Use, there: list[Callable[[], object]], worker: Worker) -> None:
        """Do what is ``there`` in the worker, unless an interrupt withdrew it, and free the Session for the next
        use.
        """
        try:
            action = _popped(there)
            if action is not None:
                with use.waits.watched():
                    action()
            del action
        except BaseException as error:
            use.error = error
        finally:
            self._idle.append(worker)
            use.over.set()
            self._late.pop(use, None)

    def run_async(self) -> AsyncRun:
        waits = Waits()
        started = self._do("run_async", super().run_async, waits)
        started.limit(self._limit, waits)
        return started

    __call__ = _within_limit(Session.__call__, "a call")
    run = _within_limit(Session.run)
    wait_for = _within_limit(Session.wait_for)
    prepare = _within_limit(Session.prepare)
    set_input = _within_limit(Session.set_input)
    set_input_zero_copy = _within_limit(Session.set_input_zero_copy)
    set_output_zero_copy = _within_limit(Session.set_output_zero_copy)
    register_buffers = _within_limit(Session.register_buffers)
    get_input = _within_limit(Session.get_input)
    get_output = _within_limit(Session.get_output)
    set_params = _within_limit(Session.set_params)
    get_params = _within_limit(Session.get_params)
    _borrow_params = _within_limit(Session._borrow_params, "set_params")
    _bind_pair = _within_limit(Session._bind_pair, "bind_state")
    _bind_states = _within_limit(Session._bind_states, "bind_state")


def _popped(actions: list[Callable[[], object]]) -> Callable[[], object] | None:
    """Returns the action in ``actions``, which has none then, or None: one thread of several gets it."""
    try:
        return actions.pop()
    except IndexError:
        return None


class _Use:
    """One use, called ``subject`` in messages, with its waits; ``error`` is what it raised, once it is ``over``."""

    def __init__(self, subject: str, waits: Waits) -> None:
        self.subject, self.waits = subject, waits
        self.over = Completion()
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
