"""Device names: what they spell, what is refused, and that printing and parsing agree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landbridge.device.name import DeviceName, parse_device_name
from landbridge.errors import UnknownDeviceError


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("cpu", DeviceName("cpu")),
        ("cpu:0", DeviceName("cpu")),
        ("opencl:12", DeviceName("opencl", 12)),
        ("sim:stale", DeviceName("sim:stale")),
        ("sim:stale:1", DeviceName("sim:stale", 1)),
        (" cuda:1 ", DeviceName("cuda", 1)),
        ("sanitize(opencl:0)", DeviceName("sanitize", 0, DeviceName("opencl"))),
        ("trace(sanitize(sim:stale:2))", DeviceName("trace", 2, DeviceName("sanitize", 2, DeviceName("sim:stale", 2)))),
    ],
)
def test_parse(text: str, parsed: DeviceName) -> None:
    assert parse_device_name(text) == parsed


@pytest.mark.parametrize("text", ["", ":1", "1", "cpu:", "cpu:-1", "a b", "f(", "f()", "f(cpu):1", "cpu:0:1", "cpu\n0"])
def test_refused(text: str) -> None:
    with pytest.raises(UnknownDeviceError, match="is not a device name; legal"):
        parse_device_name(text)


part = st.from_regex(r"[a-z_][a-z0-9_]{0,5}", fullmatch=True)
plain = st.builds(DeviceName, st.lists(part, min_size=1, max_size=3).map(":".join), st.integers(0, 99))
nested = st.recursive(plain, lambda inner: st.builds(lambda n, d: DeviceName(n, d.index, d), part, inner), max_leaves=4)


@given(nested)
def test_text_round_trip(name: DeviceName) -> None:
    assert parse_device_name(str(name)) == name
