"""The trace takes a run record by record: same results, every kernel once, in order."""

from __future__ import annotations

import json
from base64 import b64decode
from itertools import pairwise

import numpy as np
import onnx
import pytest

import landbridge as lb
from landbridge.executable.executable import Executable
from landbridge.tensor import Tensor, asarray, empty
from landbridge.timeline.svg import render_svg
from landbridge.vm.trace import trace_run
from landbridge.vm.trace_events import Trace, TraceEvent, chrome_trace
from tests.vm import programs


def _tensor(values: list[float]) -> Tensor:
    tensor = empty((len(values),), dtype="float32")
    with tensor.host_view("w") as view:
        view[...] = values
    return tensor


def _names(executable: Executable, inputs: dict[str, Tensor], threads: int = 1) -> list[str]:
    return [event.name for event in trace_run(executable, "cpu", inputs, threads)]


@pytest.mark.parametrize("threads", [1, 2])
def test_kernels_are_listed_in_order_with_times(threads: int) -> None:
    inputs = {name: _tensor([1.0] * 64) for name in ("a", "b")}
    events = trace_run(programs.two_stages(), "cpu", inputs, threads)
    assert [(event.name, event.tasks) for event in events] == [("add", 64), ("double", 32), ("double", 32)]
    assert all(event.category == "kernel" and event.duration_us > 0 for event in events)
    for before, after in pairwise(events):
        assert before.start_us + before.duration_us <= after.start_us + 1e-3  # rounding


def test_branches_trace_the_side_taken() -> None:
    x = _tensor([1.0] * 8)
    taken = _names(programs.branches(), {"x": x, "c": _tensor([1.0])})
    not_taken = _names(programs.branches(), {"x": x, "c": _tensor([-1.0])})
    assert taken == ["is_positive", "double", "double"]
    assert not_taken == ["is_positive", "copy", "double"]


def test_chrome_json() -> None:
    text = chrome_trace([TraceEvent("conv", "kernel", 1.5, 20.0, tasks=4)], process="model")
    named, lane, event = json.loads(text)["traceEvents"]
    assert (lane["name"], lane["tid"], lane["args"]["name"]) == ("thread_name", 0, "cpu")
    assert named["args"] == {"name": "model"}
    assert (event["name"], event["ph"], event["ts"], event["dur"]) == ("conv", "X", 1.5, 20.0)
    assert event["args"] == {"tasks": 4}


def test_memory_in_use_is_a_counter() -> None:
    inputs = {name: _tensor([1.0] * 64) for name in ("a", "b")}
    events = trace_run(programs.two_stages(), "cpu", inputs, 1)
    place = "memory 'global' of cpu:0"
    assert [event.memory for event in events] == [{place: (256, 320)}] * 3
    counters = [event for event in json.loads(chrome_trace(events, "model"))["traceEvents"] if event["ph"] == "C"]
    assert [(c["name"], c["ts"], c["args"]) for c in counters] == [
        (place, event.start_us, {"in use": 256, "unused": 64}) for event in events
    ]


def test_a_notebook_shows_the_timeline_of_the_command() -> None:
    events = [TraceEvent("</svg><script>", "kernel", 1.0, 2.0, 3), TraceEvent("read", "host", 4.0, 1.0)]
    trace = Trace(events, '"><script>alert(1)</script>')
    page = trace._repr_html_()
    assert "<script" not in page and "2 kernels and host steps, 0.003 ms" in page
    picture = b64decode(page.partition("base64,")[2].partition('"')[0]).decode()
    assert picture == render_svg(trace.spans(), trace.title)
    assert [(span.name, span.is_kernel) for span in trace.spans()] == [("</svg><script>", True), ("read", False)]
    assert trace == events


def test_inputs_whose_elements_are_sizes_give_them() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        g (float[8] x, int64[1] n) => (float[m] y) {
            zero = Constant<value_ints=[0]>() part = Slice(x, zero, n) y = Relu(part)
        }"""
    )
    inputs = {"x": _tensor([1.0] * 8), "n": asarray(np.array([3]))}
    (event,) = trace_run(lb.compile(model), "cpu", inputs, 1)
    assert event.category == "kernel"
