"""Chooses the Executor of a program by its form. Few programs are open or cut, and others import neither."""

from __future__ import annotations

from landbridge.executable.executable import Executable, is_cut
from landbridge.session.executor import Executor
from landbridge.session.fixed_executor import FixedExecutor
from landbridge.session.given_parameters import GivenParameters
from landbridge.session.session_options import BindOptions
from landbridge.vm.entry import Entry


def executor_of(executable: Executable, entry: Entry, options: BindOptions, params: GivenParameters) -> Executor:
    """Returns an Executor of ``executable`` for the Session with the lock ``entry``, which the caller holds; ``params``
    are the weights that it has replaced.

    Raises BindError or ExecutableError where the program does not fit the devices or this machine.
    """
    if is_cut(executable):
        from landbridge.session.pieces_executor import PiecesExecutor

        return PiecesExecutor(executable, entry, options, params)
    if executable.is_open:
        from landbridge.session.open_executor import OpenExecutor

        return OpenExecutor(executable, entry, options, params)
    return FixedExecutor(executable, entry, options, params)
