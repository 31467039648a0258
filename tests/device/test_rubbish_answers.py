"""Every method of the device contract with every kind of rubbish: an error that names it, and nothing broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from landbridge.device.api import Device
from tests.device.rubbish_answers import ROWS, Board, rubbish
from tests.testing.caller_table import PROTOCOLS, methods

#: What these return is not looked at: they did not do what they must, which shows in the numbers at most.
VOID = frozenset({
    "begin_host_access", "begin_host_access_after", "begin_record", "close", "end_host_access", "free_data_space",
    "free_stream", "free_workspace", "open", "release_import", "release_scope", "reset", "set_stream", "stream_sync",
    "suspend", "sync_stream_from_to", "wait_event", "wait_fence",
})  # fmt: skip
#: What these return is the device's own, and given back to it alone.
OPAQUE = frozenset({"end_record", "load_module"})
#: Answers that are legal, though they may say that there is nothing.
LEGAL = {
    "Event.fileno": {"zero"}, "Event.query": {"True"}, "Event.synchronize": {"True"}, "acquire_scope": {"zero"},
    "acquired_scopes": {"list"}, "can_copy": {"True"}, "copy_data_from_to": {"None"}, "count": {"zero", "huge"},
    "device_address": {"zero"}, "discovery": {"list"}, "elapsed_ms": {"None", "negative", "zero", "huge"},
    "export_fd": {"zero"}, "get_attr": {"None"}, "import_source": {"None"}, "launch": {"None"},
    "memory_provider": {"None"}, "module_formats": {"list"}, "replay": {"None"},
    "resume": {"True"}, "signal_fence": {"zero"},
    "target_properties": {"list", "mapping"},
}  # fmt: skip
#: Which say that work is done, or a device is gone, and it is not so.
LIES = frozenset({"copy_data_from_to", "discovery", "launch", "replay"})

METHODS = sorted({
    f"Event.{name}" if protocol.__name__.startswith("Event") and not protocol.__name__.endswith("s") else name
    for protocol in PROTOCOLS
    for name in methods(protocol)
})  # fmt: skip
ANSWERS = sorted(rubbish(Device(Board(), 0)))


@pytest.mark.sample(2, rarer=3)
@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("method", METHODS)
def test_rubbish(method, answer):
    done = subprocess.run(
        [sys.executable, "-m", "tests.device.rubbish_answers", method, answer],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr  # no crash, and not ended for taking too long
    found = json.loads(done.stdout)
    raises = answer.startswith(("raises", "takes"))
    assert not found["raw"] and not found["afterwards"]
    is_legal = answer in LEGAL.get(method, ())
    if raises or not (method in VOID or (method in LIES and is_legal)):
        assert not found["wrong"]
    if raises or not (method in VOID | OPAQUE or is_legal):
        device = "rows" if method in ROWS else "board"
        assert any(
            method in error and (f"{device}:" in error or f"device {device}" in error) for error in found["errors"]
        ), found["errors"]


def test_each_method_is_requested():
    assert {"can_copy", "alloc_data_space", "Event.query", "acquire_scope"} <= set(METHODS) and len(METHODS) > 40
