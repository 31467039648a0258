"""What a plugin answers wrongly, or raises, is a DeviceError that names the device, the method and the way out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.attr import DeviceAttr
from landbridge.device.registry import register, unregister
from landbridge.errors import DeviceError, OutOfMemoryError
from landbridge.memory_kind import MemoryKind
from tests.device.queueing_device import QueueingDeviceAPI


def _raise(error: Exception) -> Any:
    raise error


def _use(api: QueueingDeviceAPI) -> None:
    """Ask for the device, its facts, memory there, a copy and a view of it, as any application does."""
    device = lb.device(api.name)
    device.attr(DeviceAttr.TOTAL_MEMORY)
    tensor = lb.asarray(np.arange(8, dtype=np.float32), device=device)
    with tensor.to_device(device, scope="shared").host_view("r") as view:
        assert view.tolist() == list(range(8))


@pytest.fixture
def api() -> Iterator[QueueingDeviceAPI]:
    made = QueueingDeviceAPI()
    register(made)
    yield made
    unregister(made.name)


def test_what_is_right_passes(api: QueueingDeviceAPI) -> None:
    _use(api)


@pytest.mark.parametrize(
    ("method", "answer", "reported"),
    [
        ("count", lambda: None, r"count\(\) is None; legal: an int"),
        ("count", lambda: _raise(OSError("no /dev/npu")), r"failed at count\(\): OSError: no /dev/npu \(line \d+ of"),
        ("memory_kinds", lambda index: [], r"memory_kinds\(\) is \[\]; legal: a mapping"),
        ("memory_kinds", lambda index: {"fast": MemoryKind("fast", "none", False)}, "with 'global' among them"),
        ("memory_kinds", lambda index: {"global": "64 MiB"}, "legal: a mapping from each scope to its MemoryKind"),
        ("memory_kinds", lambda index: {}[0], r"failed at memory_kinds\(\): KeyError"),
        ("get_attr", lambda index, attr: {}[attr], r"failed at get_attr\(DeviceAttr.TOTAL_MEMORY\): KeyError"),
        ("alloc_data_space", lambda *_: None, r"alloc_data_space\(\) returned None; legal: a Space"),
        ("alloc_data_space", lambda *_: _raise(RuntimeError("ioctl: -22")), "an allocation of .*: ioctl: -22"),
        ("copy_data_from_to", lambda src, dst, nbytes: None, "failed at .*: TypeError: .* takes 3 positional"),
        ("host_pointer", lambda space: None, r"host_pointer\(\) of a space in scope 'shared' is None; legal: an ad"),
        ("host_pointer", lambda space: {}[0], r"failed at host_pointer\(\): KeyError"),
    ],
)  # fmt: skip
def test_what_is_wrong_names_the_method(
    api: QueueingDeviceAPI,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    answer: Callable[..., Any],
    reported: str,
) -> None:
    monkeypatch.setattr(api, method, answer)
    with pytest.raises(DeviceError, match=f"device {api.name}.*{reported}"):
        _use(api)


def test_errors_of_landbridge_are_passed_on(api: QueueingDeviceAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "alloc_data_space", lambda *_: _raise(OutOfMemoryError("no more")))
    with pytest.raises(OutOfMemoryError, match="and still: no more"):
        _use(api)
