"""Acquisition: takes the acquired scopes for one execution or for many, and reloads what they lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import NamedTuple

from landbridge.device.answers import number
from landbridge.device.api import Device
from landbridge.device.protocols import AcquiredScopes
from landbridge.errors import DeviceError, DeviceLostError, LandbridgeError, ScopeBusyError
from landbridge.tensor import Tensor
from landbridge.tensor.copy import copy_tensor
from landbridge.vm.device_binding import DeviceBinding

#: A device and the name of one of its scopes.
DeviceScope = tuple[Device, str]


class ReloadedWeight(NamedTuple):
    """A weight in memory that can lose its content: ``tensor``, and ``source``, which keeps the bytes."""

    scope: DeviceScope
    tensor: Tensor
    source: Tensor


class Acquisition:
    """Acquires the scopes of ``bindings`` that are there only while acquired (``DeviceBinding.acquired_by``), each once
    for each execution of a program, and reloads what they lost since the last one.

    ``residents`` are the program's weights in these scopes. ``preparation``, once set, computes what depends on
    parameters, and may write to the scopes too. One execution runs at a time, as a Session guarantees.
    """

    def __init__(self, bindings: Sequence[DeviceBinding], residents: Sequence[ReloadedWeight]) -> None:
        self._scopes = {
            (binding.device, binding.kind.scope): api
            for binding in bindings
            if (api := binding.acquired_by) is not None
        }
        self._residents = residents
        self._loaded: dict[DeviceScope, int] = {}
        self.preparation: Callable[[], object] = _nothing

    def wrap(self, execute: Callable[[], object]) -> Callable[[], object]:
        """Returns ``execute`` wrapped so that it holds the scopes; ``execute`` itself where there are none."""
        if not self._scopes:
            return execute

        def acquired() -> None:
            with self._all("run") as contents:
                self._load(contents)
                execute()

        return acquired

    def hold(self) -> AbstractContextManager[object]:
        """Returns a context manager that holds every scope, so that executions inside it find there what earlier ones
        left.

        Entering it raises ScopeBusyError where another holds one of them; none is held then.
        """
        return self._all("Session")

    def prepare(self) -> None:
        """Run ``preparation`` now; where there are scopes to acquire, with the next execution, which also reloads all
        weights.
        """
        if self._scopes:
            self._loaded = {}
        else:
            self.preparation()

    @contextmanager
    def _all(self, whose: str) -> Iterator[Mapping[DeviceScope, int]]:
        """Hold every scope until the end of the ``with``. Yields the number that ``acquire_scope`` returned for each:
        it differs from the last one's where the scope lost its content.

        Raises ScopeBusyError, whose text names the holder and ``whose`` (who needs the scope: a run or a Session), and
        DeviceError for an answer that is no number. No scope stays acquired then.
        """
        with ExitStack() as held:
            contents = {}
            for (device, scope), api in self._scopes.items():
                try:
                    with device.state.submitting(f"an acquisition of scope {scope!r}", "acquire_scope"):
                        found = api.acquire_scope(device.index, scope)
                except ScopeBusyError as error:
                    raise ScopeBusyError(
                        f"the {whose} needs scope {scope!r} of {device}: {error}; run again when it is given back, or "
                        "compile without tensors placed there"
                    ) from error
                try:
                    contents[device, scope] = number(found, device, "acquire_scope", "the number of what is there")
                except DeviceError:
                    with suppress(LandbridgeError):  # it may have been acquired before the interrupt
                        _release(device, scope, api)
                    raise
                held.callback(_release, device, scope, api)
            yield contents

    def _load(self, contents: Mapping[DeviceScope, int]) -> None:
        """Copy the weights of each scope whose number in ``contents`` changed since the last call, then run
        ``preparation``.
        """
        if contents == self._loaded:
            return
        for resident in self._residents:
            if contents[resident.scope] != self._loaded.get(resident.scope):
                copy_tensor(resident.tensor, resident.source, cause="constants:acquire")
        self.preparation()
        self._loaded = dict(contents)


def _nothing() -> None:
    pass


def _release(device: Device, scope: str, api: AcquiredScopes) -> None:
    if not device.is_lost:
        with suppress(DeviceLostError), device.state.watching(method="release_scope"):
            api.release_scope(device.index, scope)
