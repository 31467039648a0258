"""Device names: what parses prints and parses back to itself, the rest is an UnknownDeviceError."""

from __future__ import annotations

from landbridge.device.name import DeviceName, parse_device_name
from landbridge.errors import UnknownDeviceError

INSTRUMENT = ("landbridge",)
SEEDS = [text.encode() for text in ("cpu", "cpu:0", "sim:stale:1", "sanitize(opencl:0)", "a(b(c:2))", "x:9:y", "")]


def check(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    try:
        name = parse_device_name(text)
    except UnknownDeviceError:
        return
    assert parse_device_name(str(name)) == name
    assert name.index >= 0
    inner: DeviceName | None = name
    while inner is not None:
        assert inner.index == name.index
        inner = inner.inner


if __name__ == "__main__":
    from harness import restart_under_atheris

    restart_under_atheris(__file__)
