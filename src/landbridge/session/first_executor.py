"""FirstExecutor: the Executor of a program that was made in a hurry, until a better one replaces it between runs."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from landbridge.errors import LandbridgeError
from landbridge.executable.executable import Executable
from landbridge.session.executor import Executor
from landbridge.session.fixed_executor import FixedExecutor
from landbridge.session.given_parameters import GivenParameters
from landbridge.session.session_options import BindOptions
from landbridge.vm.entry import Entry

#: Lets a Session, whose lock the caller holds, work with another program; returns its Executor, or raises what binding
#: raises, and then nothing has changed.
Exchange = Callable[[Any, Executable], Executor]


class FirstExecutor(FixedExecutor):
    """The Executor of ``executable``, which has a ``replacement``, in the Session ``of``.

    Before each run it looks whether the replacement is there, and lets the Session work with that by ``exchange``. A
    replacement that cannot be bound is declined, and this program stays in use.
    """

    def __init__(
        self,
        executable: Executable,
        entry: Entry,
        options: BindOptions,
        params: GivenParameters,
        of: object,
        exchange: Exchange,
    ) -> None:
        super().__init__(executable, entry, options, params)
        self._pending = executable.replacement
        self._session, self._exchange = weakref.ref(of), exchange
        self._registered: dict[str | int, Sequence[Any]] = {}
        #: What the Session works with in place of this.
        self._full: Executor | None = None

    def run(self) -> None:
        full = self._replaced()
        super().run() if full is None else full.run()

    def call(self, arrays: Sequence[Any], out: Any) -> Any:
        full = self._replaced()
        return super().call(arrays, out) if full is None else full.call(arrays, out)

    def make_ready(self) -> None:
        full = self._replaced()
        super().make_ready() if full is None else full.make_ready()

    def execute(self, begun: Callable[[], object]) -> None:
        # of a run in the background, whose caller has looked this up before make_ready
        super().execute(begun) if self._full is None else self._full.execute(begun)

    def register_buffers(self, name: str | int, values: Sequence[Any]) -> None:
        super().register_buffers(name, values)
        self._registered[name] = values

    def _replaced(self) -> Executor | None:
        """Returns the Executor in place of this one; None while this one is in use."""
        session, pending = self._session(), self._pending
        if session is None or pending is None:
            return self._full
        found = pending.take()
        if found is None:
            return None
        try:
            self._full = full = self._exchange(session, found)
            for name, values in self._registered.items():
                full.register_buffers(name, values)
        except LandbridgeError as error:
            self._pending = None
            pending.decline(str(error))
            return self._full
        self._pending = None
        return full
