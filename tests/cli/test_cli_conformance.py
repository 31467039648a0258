"""``landbridge conformance`` and the self-tests of ``landbridge devices``, on devices that keep the contract or not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from landbridge.device import registry
from landbridge.device.api import Space
from landbridge.device.attr import DeviceAttr
from landbridge.testing.sim_lazy import SimLazyDeviceAPI
from tests.cli.command_line import invoke


class Bad(SimLazyDeviceAPI):
    name = "bad"

    def get_attr(self, index: int, attr: DeviceAttr) -> object | None:
        if attr is DeviceAttr.VENDOR:
            raise RuntimeError("no such query")
        return super().get_attr(index, attr)


class Dead(SimLazyDeviceAPI):
    name = "dead"

    def alloc_data_space(self, index: int, nbytes: int, alignment: int, scope: str, type_hint: str | None) -> Space:
        raise OSError("no answer from the card")


@pytest.fixture
def two_bad_devices() -> Iterator[None]:
    registry.register(Bad())
    registry.register(Dead())
    yield
    registry.unregister("bad")
    registry.unregister("dead")


@pytest.mark.full
def test_conformance_of_a_device_that_conforms() -> None:
    done = invoke(["conformance", "sim:lazy", "--json"])
    assert done.exit_code == 0
    report = json.loads(done.stdout)
    assert report["device"] == "sim:lazy:0"
    assert report["fail"] == 0
    assert report["pass"] + report["skip"] == len(report["results"])
    assert all(result["sentence"] for result in report["results"])


@pytest.mark.full
@pytest.mark.usefixtures("two_bad_devices")
def test_conformance_names_the_broken_sentence(tmp_path: Path) -> None:
    arguments = ["conformance", "bad", "--report", str(tmp_path / "bad.json")]
    done = invoke(arguments, env={"COLUMNS": "200", "NO_COLOR": "1"})
    assert done.exit_code == 3
    assert "no such query" in done.stdout
    report = json.loads((tmp_path / "bad.json").read_text())
    assert [r["name"] for r in report["results"] if r["outcome"] == "fail"] == ["test_get_attr"]


def test_conformance_of_no_device() -> None:
    assert invoke(["conformance", "sim:lasy"]).exit_code == 1


@pytest.mark.usefixtures("two_bad_devices")
def test_devices_tests_each_and_lists_the_rest() -> None:
    shown = invoke(["devices", "-v"], env={"COLUMNS": "200", "NO_COLOR": "1"})
    assert shown.exit_code == 0
    assert "cpu:0: PASS" in shown.stdout
    assert "sim:lazy:1: PASS" in shown.stdout
    (dead,) = (line for line in shown.stdout.splitlines() if line.startswith("dead:0: FAIL"))
    assert "failed at an allocation" in dead and "OSError: no answer from the card (line " in dead
    assert "landbridge.devices.cpu:CpuDeviceAPI" in shown.stdout
    assert "bad:0 failed at get_attr(DeviceAttr.VENDOR): RuntimeError: no such query (line " in shown.stderr
