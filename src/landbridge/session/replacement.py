"""Replacement: another Executor for a Session, of another compile of its program, made while the Session is in use."""

from __future__ import annotations

from landbridge.errors import BindError
from landbridge.executable.executable import Executable
from landbridge.session.executor import Executor
from landbridge.session.executors import executor_of
from landbridge.session.given_parameters import GivenParameters
from landbridge.session.session_options import BindOptions
from landbridge.vm.entry import Entry


class Replacement:
    """An Executor of ``executable``, which is to replace one of ``before`` in the Session with the lock ``entry``.

    Making it needs no lock. Raises BindError where the two programs have other inputs, outputs or weights, where the
    other lacks an alias, and as an Executor.
    """

    def __init__(self, before: Executable, executable: Executable, entry: Entry, options: BindOptions) -> None:
        now, then = before.main, executable.main
        for subject, given, legal in (
            ("inputs", then.inputs, now.inputs),
            ("outputs", then.outputs, now.outputs),
            ("weights that set_params replaces", then.parameters, now.parameters),
            # what is bound together now may stay so; that the other program allows more is no matter
            ("aliases", [each for each in then.aliases if each in now.aliases], now.aliases),
        ):
            if tuple(given) != tuple(legal):
                raise BindError(
                    f"{entry.name} cannot continue with another program: its {subject} are {list(given)}; legal: "
                    f"{list(legal)}; compile the same model, with the same shapes=, dims=, mutable= and alias="
                )
        self.executable = executable
        #: The weights that the executor has, which are none of the Session's until it continues.
        self.params = GivenParameters()
        self.executor = executor_of(executable, entry, options, self.params)

    def continue_from(self, executor: Executor, params: GivenParameters) -> None:
        """Give the executor the weights ``params``, what is bound in ``executor``, and its states; the caller holds the
        lock. Nothing of ``executor`` has changed where it raises.

        Raises BindError where the one is open, or cut, and the other is not.
        """
        if not isinstance(executor, type(self.executor)):
            raise BindError(
                "a Session cannot continue with a program of another form: one is open, or cut where data decide "
                "sizes, and the other is not; make another Session"
            )
        if params.copied:
            self.params.note_copies(self.executor.set_params(params.copied))
        if params.bound:
            self.executor.borrow_params(params.bound)()
            self.params.note_bound(params.bound)
        self.executor.continue_from(executor)
