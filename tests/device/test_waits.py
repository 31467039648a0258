"""What is noted of a use's waits: the innermost one, of this thread and of those that it has work done by."""

from __future__ import annotations

import threading

from landbridge.device.stream import carried
from landbridge.device.waits import Waits, waits_of_thread


def test_the_innermost_wait_is_the_text():
    waits = Waits()
    assert str(waits).startswith("no device")
    with waits.inside("kernel", "conv", "on", "npu:0"):
        with waits.inside("npu:0 to return from", 7):
            assert str(waits) == "npu:0 to return from 7"
        assert str(waits) == "kernel conv on npu:0"
    assert str(waits).startswith("no device")


def test_they_are_of_the_threads_that_work_for_the_use_alone():
    waits, seen = Waits(), []

    def look() -> None:
        seen.append(waits_of_thread())

    with waits.watched():
        assert waits_of_thread() is waits
        carry = carried(look)
        for action in (carry, look):
            thread = threading.Thread(target=action)
            thread.start()
            thread.join()
    assert waits_of_thread() is None and seen == [waits, None]
