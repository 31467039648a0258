"""The lives of a device instance: it is opened once, begins a new life by ``reopen`` or ``reset``, and closes at
exit.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol, runtime_checkable

from landbridge.device.answers import answering
from landbridge.device.state import DeviceState, Instances, begin_anew, every_state, state_of
from landbridge.errors import DeviceError, DeviceLostError, InputError, LandbridgeError, UnsupportedError


@runtime_checkable
class Lifecycle(Protocol):
    """The ability to be opened, closed or reset (bitstream, firmware). Without it, nothing is done."""

    def open(self, index: int, **options: object) -> None:
        """Bring instance ``index`` up with the device's own ``options``; called before all else, once until ``close``.

        Raises InputError for options that it does not have, DeviceError when it does not come up; it stays closed then.
        """

    def close(self, index: int) -> None:
        """Finish queued work and release instance ``index``; its memory is lost, and ``open`` may follow.

        It does nothing where the instance is not open.
        """

    def reset(self, index: int) -> None:
        """Bring instance ``index`` back to its state after ``open``; queued work is dropped and its memory is lost."""


def open_once(api: Instances, state: DeviceState, index: int, options: Mapping[str, object]) -> None:
    """Open instance ``index`` with ``options`` unless it is open already.

    An open instance takes no options, or the same ones again. Raises InputError for other options, or for any where the
    device takes none; and what ``open`` raises, as a DeviceError where it is not an error of Landbridge.
    """
    state.check()
    with state.opening:
        if state.is_open:
            if options and dict(options) != state.options:
                raise InputError(
                    f"device {state.name} is open with {_spelled(state.options)}, and {_spelled(options)} was "
                    "requested; give the same, or none, or call reopen() of it with the new ones, which ends what is "
                    "on it"
                )
            return
        wanted = dict(options) or state.options
        if isinstance(api, Lifecycle):
            try:
                api.open(index, **wanted)
            except LandbridgeError:
                raise
            except TypeError as error:
                raise InputError(f"device {state.name} cannot be opened with {_spelled(wanted)}: {error}") from error
            except Exception as error:
                raise DeviceError(f"device {state.name} failed to open with {_spelled(wanted)}: {error}") from error
        elif wanted:
            raise InputError(f"device {state.name} takes no options, and {_spelled(wanted)} was given; leave it out")
        state.options, state.is_open = wanted, True


def reopen(api: Instances, index: int, options: Mapping[str, object]) -> None:
    """Close instance ``index`` and open it for its next life, with the last options overridden by ``options``.

    All that was made in the last life is lost. When it cannot be opened, the next request for it tries again, with the
    options of the last life alone.
    """
    state = state_of(api, index)
    if isinstance(api, Lifecycle):
        with suppress(DeviceLostError), answering(state.name, "close()"):
            api.close(index)
    open_once(api, begin_anew(api, index, "it was reopened", state.options), index, {**state.options, **options})


def reset(api: Instances, index: int) -> None:
    """Reset instance ``index``, which begins its next life; raises UnsupportedError where the device cannot."""
    state = state_of(api, index)
    if not isinstance(api, Lifecycle):
        raise UnsupportedError(f"device {state.name} cannot be reset, as it has no such method; drop what is on it")
    open_once(api, state, index, {})
    with state.watching("a reset", "reset"):
        api.reset(index)
    begin_anew(api, index, "it was reset", state.options).is_open = True


def leave_open_at_exit() -> None:
    """Leave all devices open at exit, because work is under way that nobody can wait for."""
    atexit.unregister(_close_all)


def _close_all() -> None:
    """Close every device that was opened and is not lost, at exit: after the last run, before code and drivers go."""
    for api, index, state in every_state():
        if state.is_open and state.failure is None and isinstance(api, Lifecycle):
            with suppress(Exception):  # nobody is left to catch it
                api.close(index)
            state.failure = DeviceLostError(f"device {state.name} was closed, as the process exits")


def _spelled(options: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in options.items()) or "no options"


# Registered before the code that runs programs registers its own handler: exit calls them in reverse order.
atexit.register(_close_all)
os.register_at_fork(after_in_child=leave_open_at_exit)
