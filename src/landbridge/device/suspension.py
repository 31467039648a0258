"""Suspension: a device that saves power while nobody uses it, or goes with the system; its memory may be lost."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from landbridge.device.answers import refusal
from landbridge.device.state import DeviceState, Instances, begin_anew, state_of
from landbridge.errors import ContextLostError, InputError, UnsupportedError


@runtime_checkable
class Suspension(Protocol):
    """The ability to be suspended and resumed. Without it: UnsupportedError."""

    def suspend(self, index: int) -> None:
        """Suspend instance ``index``, whose work is done. Until ``resume``, only memory is given back."""

    def resume(self, index: int) -> bool:
        """Resume instance ``index``; returns whether its memory holds what it held. If not, all of it is gone, and
        the next life of the instance begins.
        """


def suspend(api: Instances, index: int) -> None:
    """Suspend an instance whose work is done; raises UnsupportedError where the device cannot."""
    state = state_of(api, index)
    able = _able(api, state)
    with state.watching("a suspension", "suspend"):
        able.suspend(index)
    state.suspend()


def resume(api: Instances, index: int) -> None:
    """Resume an instance. Where its memory is lost, all of its handles raise ContextLostError, and a new life begins.

    Raises InputError where it is not suspended.
    """
    state = state_of(api, index)
    able = _able(api, state)
    if not state.is_suspended:
        raise InputError(f"device {state.name} is not suspended; there is nothing to resume")
    state.resume()
    try:
        with state.watching("a resumption", "resume"):
            retained: object = able.resume(index)
        if retained is not True and retained is not False:
            raise refusal(state.name, "resume", retained, "True or False")
    except Exception:
        if state.failure is None:
            state.suspend()
        raise
    if not retained:
        state.lose("its memory was not retained while it was suspended", ContextLostError)
        begin_anew(api, index, "", state.options).is_open = state.is_open


def _able(api: Instances, state: DeviceState) -> Suspension:
    if not isinstance(api, Suspension):
        raise UnsupportedError(f"device {state.name} cannot be suspended, as it has no such methods; leave it running")
    return api
