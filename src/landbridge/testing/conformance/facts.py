"""Tests of the facts that a device reports of itself."""

from __future__ import annotations

from collections.abc import Callable

import landbridge as lb
from landbridge.device import registry
from landbridge.device.api import DEVICE_API_VERSION
from landbridge.device.attr import DeviceAttr
from landbridge.device.protocols import Discovery, TargetFacts
from landbridge.errors import DeviceIndexError, InputError
from landbridge.memory_kind import MemoryKind
from landbridge.testing.conformance.base import ConformanceCase, expect, expect_raises

_EXT_DEV = 12
_HOST = 1


def _is_text(value: object) -> bool:
    return type(value) is str and bool(value)


def _is_number(value: object) -> bool:
    return type(value) is int and value > 0


def _is_bytes_left(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_clock(value: object) -> bool:
    return type(value) is int and 1_000_000 <= value <= 100_000_000_000


def _is_names(value: object) -> bool:
    return type(value) is tuple and all(type(name) is str for name in value)


def _is_extents(value: object) -> bool:
    return type(value) is tuple and len(value) == 3 and all(map(_is_number, value))


def _is_power_of_two(value: object) -> bool:
    return type(value) is int and value > 0 and not value & (value - 1)


_CLOCK = (_is_clock, "an int of hertz, from 1 MHz to 100 GHz")
_TEXT = (_is_text, "a str that is not empty")
#: What is legal for an attribute, and in words; for those not named here, an int over 0.
_ATTRIBUTES: dict[DeviceAttr, tuple[Callable[[object], bool], str]] = {
    DeviceAttr.PRODUCT_NAME: _TEXT,
    DeviceAttr.VENDOR: _TEXT,
    DeviceAttr.DRIVER_VERSION: _TEXT,
    DeviceAttr.AVAILABLE_MEMORY: (_is_bytes_left, "an int, at least 0"),
    DeviceAttr.API_VERSION: _TEXT,
    DeviceAttr.MAX_CLOCK_HZ: _CLOCK,
    DeviceAttr.MEMORY_CLOCK_HZ: _CLOCK,
    DeviceAttr.MAX_BLOCK_DIMENSIONS: (_is_extents, "a tuple of three int over 0"),
    DeviceAttr.SUBGROUP_SIZE: (_is_power_of_two, "an int, a power of two"),
    DeviceAttr.IMAGE_PITCH_BYTES: (_is_power_of_two, "an int, a power of two"),
    DeviceAttr.FEATURES: (_is_names, "a tuple of str"),
}


class FactConformance(ConformanceCase):
    """Tests names, versions, attributes and memory kinds."""

    def test_api_version(self) -> None:
        """Plugins state DEVICE_API_VERSION, checked at load."""
        expect(self.api.api_version == DEVICE_API_VERSION, f"api_version is {self.api.api_version!r}")

    def test_count(self) -> None:
        """Required: count()."""
        count = self.api.count()
        expect(type(count) is int and count > self.device.index, f"count() is {count!r}, and {self.device} is open")

    def test_index_that_does_not_exist(self) -> None:
        """An index that does not exist: an error of its own."""
        name = f"{self.device.name}:{self.api.count()}"
        expect_raises(DeviceIndexError, lambda: registry.device(name), f"device({name!r})")

    def test_get_attr(self) -> None:
        """get_attr(index, DeviceAttr) -> value | None (None when it cannot be queried or does not apply, never an
        exception)."""
        for attr in DeviceAttr:
            try:
                self.api.get_attr(self.device.index, attr)
            except Exception as error:
                raise AssertionError(
                    f"get_attr({attr}) raised {type(error).__name__}: {error}; None is meant"
                ) from error

    def test_attribute_types(self) -> None:
        """The value of an attribute has the type and unit that DeviceAttr says: numbers are of bytes and hertz."""
        for attr in DeviceAttr:
            value = self._attribute(attr)
            if value is not None:
                is_legal, legal = _ATTRIBUTES.get(attr, (_is_number, "an int over 0"))
                expect(is_legal(value), f"get_attr({attr}) is {value!r}; legal: {legal}, or None")
        total, left = (self._attribute(attr) for attr in (DeviceAttr.TOTAL_MEMORY, DeviceAttr.AVAILABLE_MEMORY))
        if isinstance(total, int) and isinstance(left, int):
            expect(left <= total, f"{left} bytes of memory are available, and {total} are all there are")
        threads, extents = (
            self._attribute(attr) for attr in (DeviceAttr.MAX_THREADS_PER_BLOCK, DeviceAttr.MAX_BLOCK_DIMENSIONS)
        )
        if isinstance(threads, int) and isinstance(extents, tuple):
            along = f"a block may have {threads} threads, and {extents} along x, y and z"
            expect(max(extents) <= threads, along)

    def test_attributes_stay(self) -> None:
        """What a device is does not change: its attributes, but AVAILABLE_MEMORY, and memory kinds stay the same."""
        index = self.device.index
        for attr in DeviceAttr:
            if attr not in (DeviceAttr.AVAILABLE_MEMORY, DeviceAttr.MAX_CLOCK_HZ):
                first, again = (self._attribute(attr) for _ in range(2))
                expect(first == again, f"get_attr({attr}) is {first!r}, and then {again!r}")
        first_kinds, kinds = (dict(self.api.memory_kinds(index)) for _ in range(2))
        expect(first_kinds == kinds, f"memory_kinds are {first_kinds}, and then {kinds}")

    def _attribute(self, attr: DeviceAttr) -> object | None:
        """Returns the attribute; None where the device raises, which another test reports."""
        try:
            return self.api.get_attr(self.device.index, attr)
        except Exception:
            return None

    def test_discovery(self) -> None:
        """discovery(): a line for each thing that looking for instances found; never raises."""
        lines = self.ability(Discovery).discovery()
        is_lines = isinstance(lines, list | tuple) and all(isinstance(line, str) for line in lines)
        expect(is_lines, f"discovery() is {lines!r}, no list of lines")

    def test_target_properties(self) -> None:
        """target_properties: what the hardware knows of itself makes a Target."""
        self.ability(TargetFacts)
        target = lb.Target.from_device(self.device)
        expect(isinstance(target, lb.Target), f"Target.from_device made {target!r}")

    def test_global_scope(self) -> None:
        """ "global" always exists."""
        expect("global" in self.api.memory_kinds(self.device.index), "memory_kinds has no 'global'")

    def test_empty_scope(self) -> None:
        """ "" means "global"."""
        found = self.alloc(64, "").scope
        expect(found == "global", f"a space allocated with scope '' has scope {found!r}")

    def test_unknown_scope(self) -> None:
        """An unknown scope: an error that names the scope, what was asked and what is legal."""
        call = lambda: self.api.alloc_data_space(self.device.index, 64, 1, "no-such-scope", None)  # noqa: E731
        error = expect_raises(InputError, call, "an allocation in an unknown scope")
        expect("no-such-scope" in str(error) and "global" in str(error), f"the message names no scopes: {error}")

    def test_kinds(self) -> None:
        """MemoryKind (one per scope of a device)."""
        for scope, kind in self.api.memory_kinds(self.device.index).items():
            expect(isinstance(kind, MemoryKind), f"the kind of {scope!r} is a {type(kind).__name__}")
            expect(kind.scope == scope, f"the kind of {scope!r} calls itself {kind.scope!r}")

    def test_device_type(self) -> None:
        """Device types: names of DLDeviceType keep their DLPack code, any other name gets a code above kDLExtDev from
        the registry."""
        code = registry.device_type(self.api)
        known = registry.DLPACK_DEVICE_TYPES.get(self.device.name)
        expect(code == known if known is not None else code > _EXT_DEV, f"{self.device} has the DLPack type {code}")

    def test_dlpack_device(self) -> None:
        """dlpack_device: it reports what was really granted."""
        owned = registry.device_type(self.api)
        for kind in self.device.memory_kinds.values():
            if kind.dlpack_device is None:
                continue
            code, index = kind.dlpack_device
            if code == owned:
                expect(index == self.device.index, f"scope {kind.scope!r} says index {index}, not {self.device.index}")
            else:
                in_host = kind.host_readable and kind.coherent and (code, index) == (_HOST, 0)
                expect(in_host, f"scope {kind.scope!r} says {(code, index)}; its own type is {owned}")
