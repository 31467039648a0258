"""Plugins: each way in which a name can be found, or not, of made-up groups of entry points."""

from __future__ import annotations

import json
import sys
from importlib import metadata
from pathlib import Path

import pytest

from landbridge.errors import DeviceError, DeviceNameTakenError, UnknownDeviceError
from landbridge.plugins import Plugins

GROUP = "landbridge.tests"


def plugins(**built_in: str) -> Plugins[object]:
    def make(name: str, loaded: object, origin: str) -> object:
        if isinstance(loaded, int):
            raise DeviceError(f"{origin} is no {name}")
        return loaded

    return Plugins(GROUP, "thing", built_in, make, DeviceError, unknown=UnknownDeviceError, taken=DeviceNameTakenError)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two distributions: one with a plugin, one that does not import; both have one called ``twice``."""
    for name, text, points in (
        ("good", "GOOD, WRONG = ['good'], 7", ("good = lb_good:GOOD", "wrong = lb_good:WRONG", "twice = lb_good:GOOD")),
        ("bad", "import nothing_of_this_name", ("bad = lb_bad:BAD", "twice = lb_bad:BAD", "own = lb_bad:BAD")),
    ):
        info = tmp_path / name / f"{name}_plugin-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-plugin\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("\n".join((f"[{GROUP}]", *points)))
        (tmp_path / name / f"lb_{name}.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path / name)
    monkeypatch.delitem(sys.modules, "lb_good", raising=False)


def test_a_plugin_is_imported_when_it_is_requested_and_once(site: None) -> None:
    found = plugins()
    assert found.names() == ["bad", "good", "own", "twice", "wrong"]
    assert "lb_good" not in sys.modules
    assert found.get("good") == ["good"]
    assert found.get("good") is found.get("good")
    assert found.origin("good") == "lb_good:GOOD of good-plugin"


def test_a_broken_plugin_breaks_itself_alone(site: None) -> None:
    found = plugins()
    with pytest.raises(DeviceError, match=r"thing 'bad', lb_bad:BAD of bad-plugin, does not import: .*nothing_of_this"):
        found.get("bad")
    with pytest.raises(DeviceError, match="lb_good:WRONG of good-plugin is no wrong"):
        found.get("wrong")
    assert found.get("good") == ["good"]


def test_a_clash_names_both_packages(site: None) -> None:
    both = r"claimed by lb_(good|bad):\w+ of (good|bad)-plugin and by lb_(good|bad):\w+ of (good|bad)-plugin"
    with pytest.raises(DeviceNameTakenError, match=both):
        plugins().get("twice")


def test_an_unknown_name_gives_the_nearest(site: None) -> None:
    with pytest.raises(UnknownDeviceError, match=r"unknown thing 'goot' \(did you mean 'good'\?\); known: bad, good"):
        plugins().get("goot")


def test_built_in_ones_are_found_without_reading_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "entry_points", lambda group: pytest.fail("plugins were read"))
    assert plugins(own="landbridge.errors:DeviceError").get("own") is DeviceError


def test_nobody_takes_the_name_of_a_built_in_one(site: None) -> None:
    found = plugins(own="landbridge.errors:DeviceError")
    assert found.get("own") is DeviceError
    assert found.origin("own") == "landbridge.errors:DeviceError and lb_bad:BAD of bad-plugin"
    with pytest.raises(DeviceNameTakenError, match=r"'own' of here is taken by landbridge\.errors:DeviceError"):
        found.register("own", object(), "here")


def test_registered_ones(site: None) -> None:
    found, mine = plugins(), object()
    found.register("mine", mine, "here")
    found.register("mine", mine, "here")
    assert found.get("mine") is mine
    assert (found.names()[1:3], found.origin("mine")) == (["good", "mine"], "here")
    with pytest.raises(DeviceNameTakenError, match="thing 'mine' of there is taken by here"):
        found.register("mine", object(), "there")
    with pytest.raises(DeviceNameTakenError, match="taken by lb_good:GOOD of good-plugin"):
        found.register("good", object(), "there")
    assert found.unregister("mine") is mine
    assert found.unregister("mine") is None
    assert "mine" not in found.names()


def test_a_name_of_our_own_is_not_taken_by_a_plugin(site: None) -> None:
    found = plugins(own="json:dumps")
    assert found.get("own") is json.dumps
    assert found.passed_over() == {"own": "lb_bad:BAD of bad-plugin"}
    assert plugins().passed_over() == {}


def test_what_is_installed_can_be_left_out(site: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANDBRIDGE_PLUGINS", "0")
    found = plugins(own="json:dumps")
    assert found.names() == ["own"]
    with pytest.raises(UnknownDeviceError, match="LANDBRIDGE_PLUGINS=0 leaves out what is installed"):
        found.get("good")
    monkeypatch.setenv("LANDBRIDGE_PLUGINS", "1")
    assert "good" in plugins().names()


def test_a_plugin_that_ends_the_process_is_broken(tmp_path: Path, site: None) -> None:
    (tmp_path / "bad" / "lb_bad.py").write_text("raise SystemExit(3)")
    with pytest.raises(DeviceError, match="does not import: SystemExit: 3"):
        plugins().get("bad")
