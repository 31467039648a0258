"""Pool: a pipeline of runs on several Sessions, with results in order and a bounded queue."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar

from landbridge.errors import ForkedDeviceError, InputError
from landbridge.executable.executable import Executable
from landbridge.process.background_threads import check_threads
from landbridge.process.exhaustion import raise_exhaustion
from landbridge.process.process_bound import ProcessBound
from landbridge.process.usable_cores import usable_cores
from landbridge.session.given_parameters import copies_of_parameters, memory_of_parameters
from landbridge.session.session import Session, borrow_params
from landbridge.tensor import Tensor

if TYPE_CHECKING:
    from typing import Self  # new in Python 3.11

#: A function that is called with the outputs of a run.
Callback = Callable[[Any], object]


class Pool(ProcessBound):
    """A pool of ``n`` Sessions of ``executable`` that share one set of weights, each with a thread for submitted runs.

    ``n`` None is the number of processors of this process. ``waiting`` is how many runs may wait for a Session, ``n``
    if None; ``submit`` blocks while that many wait, so that a camera that is faster than the network does not fill
    memory. The other options are those of Session; ``num_threads`` defaults to 1, as ``n`` runs use all processors
    already.

    ``with lb.Pool(executable) as pool:`` ends when all submitted runs are done. Raises what Session raises.
    """

    _instead: ClassVar[str] = "pickle the Executable, or save it to a file, and make a Pool where it is used"

    def __init__(
        self, executable: Executable, n: int | None = None, *, waiting: int | None = None, **session: Any
    ) -> None:
        count = usable_cores() if n is None else n
        most = count if waiting is None else waiting
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise InputError(f"n is {n!r}; legal: None, or a number from 1")
        if isinstance(most, bool) or not isinstance(most, int) or most < 0:
            raise InputError(f"waiting is {waiting!r}; legal: None, or a number from 0")
        options = {"num_threads": 1, **session}
        self._sessions = deque(Session(executable, **options) for _ in range(count))
        self._name = f"Pool({self._sessions[0]}, n={count})"
        self._most = count + most
        self._capacity = threading.Semaphore(self._most)
        self._order, self._changing = threading.Lock(), threading.Lock()
        check_threads(count)
        self._threads = ThreadPoolExecutor(count, "landbridge-pool")
        self._delivery = _Delivery()
        self._process = os.getpid()

    def __repr__(self) -> str:
        return self._name

    def submit(self, *arrays: Any, callback: Callback | None = None) -> Future[Any]:
        """Submit a run on ``arrays``, given as in a call of a Session; returns a Future of its outputs.

        ``arrays`` are read in place until the Future is done. ``callback`` gets the outputs in a thread of the pool.
        Callbacks are called one at a time, in the order of their submits, whichever run ends first; the Future is done
        after its callback, and what that raises is the Future's exception. A callback that submits may wait for itself.
        ``submit`` blocks while no more runs may wait. Raises InputError after ``close``, and ForkedDeviceError in a
        child process.
        """
        if self._is_left_behind():
            raise ForkedDeviceError(
                f"{self._name} and its threads are of the parent process; make a new one in the child"
            )
        self._capacity.acquire()
        try:
            with self._order:  # tickets follow the order in which runs begin
                ticket = None if callback is None else self._delivery.ticket()
                try:
                    future = self._threads.submit(self._run, arrays, callback, ticket)
                except RuntimeError as error:
                    if ticket is not None:
                        self._delivery.skip(ticket)
                    raise_exhaustion(error, "a Pool took a run")
                    raise InputError(f"{self._name} takes no more runs ({error}); make another one") from error
        except BaseException:
            self._capacity.release()
            raise
        future.add_done_callback(lambda done: self._over(done, ticket))
        return future

    def set_params(self, values: Mapping[str, Any], *, copy: bool = True) -> None:
        """Give the weights of all Sessions new values, as ``Session.set_params`` does, between two runs.

        Waits until the submitted runs and their callbacks are over, and delays those that are submitted until then. A
        callback must not call it, as it would wait for itself. With ``copy=False`` all Sessions share the memory of
        ``values``. Raises what
        ``Session.set_params`` raises, and then changes none.
        """
        with self._idle() as sessions:
            if copy:
                copies = copies_of_parameters(sessions[0].params, values)
                for session in sessions:
                    session.set_params(copies)
            else:
                memory = memory_of_parameters(sessions[0].params, values)
                for change in [borrow_params(session, memory) for session in sessions]:
                    change()

    def get_params(self) -> dict[str, Tensor]:
        """Returns the weights that ``set_params`` may replace, as ``Session.get_params`` does; waits as that does."""
        with self._idle() as sessions:
            return sessions[0].get_params()

    @contextmanager
    def _idle(self) -> Iterator[tuple[Session, ...]]:
        """Wait until no run is submitted; yields all Sessions, and no run begins before the end of the block."""
        if self._is_left_behind():
            raise ForkedDeviceError(f"{self._name} is of the parent process; make a new one in the child")
        with self._changing:
            taken = 0
            try:
                for _ in range(self._most):
                    self._capacity.acquire()
                    taken += 1
                yield tuple(self._sessions)
            finally:
                for _ in range(taken):
                    self._capacity.release()

    def map(self, inputs: Iterable[Any]) -> Iterator[Any]:
        """Yields the outputs for each of ``inputs``, in order: an array, a tuple with one for each input, or a mapping
        by name.

        ``inputs`` are consumed as the queue has capacity, so an endless one is legal.
        """
        pending: deque[Future[Any]] = deque()
        try:
            for each in inputs:
                pending.append(self.submit(*each) if isinstance(each, tuple) else self.submit(each))
                while pending and (pending[0].done() or len(pending) >= self._most):
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()

    def close(self) -> None:
        """Accept no more runs, and return when the submitted ones are over; in a child process, at once."""
        if not self._is_left_behind():
            self._threads.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_left_behind():
            self._threads.shutdown(cancel_futures=error is not None)

    def _is_left_behind(self) -> bool:
        """Returns whether this process is a child of the one whose threads the Pool has."""
        return os.getpid() != self._process

    def _run(self, arrays: tuple[Any, ...], callback: Callback | None, ticket: int | None) -> Any:
        session = self._sessions.popleft()  # one for each thread
        try:
            outputs = session(*arrays)
        finally:
            self._sessions.append(session)
        if callback is not None and ticket is not None:
            with self._delivery.served(ticket):
                callback(outputs)
        return outputs

    def _over(self, done: Future[Any], ticket: int | None) -> None:
        self._capacity.release()
        if ticket is not None:  # of a run that failed or was cancelled, whose callback is not called
            self._delivery.skip(ticket)


class _Delivery:
    """Tickets that are served one at a time, in order; those without anything to deliver are skipped."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._next = self._given = 0
        self._skipped: set[int] = set()

    def ticket(self) -> int:
        with self._changed:
            self._given += 1
            return self._given - 1

    @contextmanager
    def served(self, ticket: int) -> Iterator[None]:
        """Wait until ``ticket`` is served; the end of the block lets the next one be served."""
        with self._changed:
            self._changed.wait_for(lambda: self._next == ticket)
        try:
            yield
        finally:
            self.skip(ticket)

    def skip(self, ticket: int) -> None:
        """Skip ``ticket``, so that those after it are served."""
        with self._changed:
            if ticket >= self._next:
                self._skipped.add(ticket)
            while self._next in self._skipped:
                self._skipped.remove(self._next)
                self._next += 1
            self._changed.notify_all()
