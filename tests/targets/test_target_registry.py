"""Target kinds: registration, plugins, and options of every type in every written form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import metadata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landbridge import targets
from landbridge.errors import TargetError
from landbridge.targets import Option, Target, TargetKind, registry, text

TOY = TargetKind(
    name="toy",
    doc="a kind for tests",
    options=(
        Option("label", "str", "Any text."),
        Option("lanes", "int", "Lanes.", default=4, minimum=1),
        Option("fast", "bool", "Fast."),
        Option("features", "list", "Features."),
        Option("level", "str", "Level.", default="low", choices=("low", "high")),
        Option("bits", "int", "Bits.", minimum=32, power_of_two=True),
    ),
    device_types=("toy",),
    derive=lambda options: {"wide": options["lanes"] == 8},
)


@pytest.fixture(autouse=True, scope="module")
def toy() -> Iterator[None]:
    targets.register(TOY)
    yield
    targets.unregister("toy")


_names = st.text(st.characters(exclude_characters=",\0", exclude_categories=("Cs",)), min_size=1, max_size=8)
_options = st.fixed_dictionaries(
    {},
    optional={
        "label": st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=12),
        "lanes": st.integers(1, (1 << 63) - 1),
        "fast": st.booleans(),
        "features": st.lists(_names, max_size=4).map(tuple),
        "level": st.sampled_from(["low", "high"]),
    },
)


@given(_options)
def test_every_form_round_trips(options: dict[str, object]) -> None:
    target = Target({"kind": "toy", **options})
    assert all(target.options[name] == value for name, value in options.items())
    assert Target(str(target)) == target
    assert not str(target).startswith("{")
    assert Target(target.to_dict()) == target
    assert Target.from_json(target.to_json()) == target


@given(st.text(max_size=30))
def test_any_text_parses_or_is_a_target_error(junk: str) -> None:
    for spec in (junk, f"toy {junk}"):
        try:
            Target(spec)
        except TargetError as error:
            assert str(error)


def test_defaults_and_derived_facts() -> None:
    assert dict(Target("toy").options) == {"lanes": 4, "level": "low"}
    assert Target("toy -lanes=8 -fast").attrs["wide"] is True
    assert Target("toy -fast").options["fast"] is True


def test_illegal_values_say_what_is_legal() -> None:
    with pytest.raises(TargetError, match="one of low, high"):
        Target("toy -level=medium")
    with pytest.raises(TargetError, match="0 or 1"):
        Target("toy -fast=perhaps")
    assert [Target(f"toy -bits={bits}").options["bits"] for bits in (32, 4096)] == [32, 4096]
    for bits in (0, 16, 48, 384):
        with pytest.raises(TargetError, match="legal: a power of two, at least 32"):
            Target(f"toy -bits={bits}")
    with pytest.raises(TargetError, match="at least 1"):
        Target({"kind": "toy", "lanes": True})
    with pytest.raises(TargetError, match="does not state 'mcpu'"):
        _ = Target("toy").mcpu


def test_a_kind_may_not_declare_reserved_or_repeated_options() -> None:
    for names in (["memory"], ["a", "a"]):
        with pytest.raises(TargetError, match=names[0]):
            TargetKind("bad", "", tuple(Option(n, "str", "") for n in names), ())


def test_names_can_be_taken_once() -> None:
    targets.register(TOY)  # the same kind again is no clash
    with pytest.raises(TargetError, match="'another' is taken by 'a kind for tests'"):
        targets.register(TargetKind("toy", "another", (), ()))
    with pytest.raises(TargetError, match=r"is taken by landbridge\.targets\.llvm:LLVM"):
        targets.register(TargetKind("llvm", "another", (), ()))
    assert {"toy", "llvm"} <= set(targets.names())


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Have entry points ``name=value`` of kinds installed, and no others."""

    def installed(**points: str) -> None:
        found = [metadata.EntryPoint(name, value, "landbridge.targets") for name, value in points.items()]
        monkeypatch.setattr(metadata, "entry_points", lambda group: found)
        monkeypatch.setattr(registry._kinds, "_installed", None)
        monkeypatch.setattr(registry._kinds, "_known", dict(registry._kinds._known))

    return installed


def test_an_entry_point_names_a_kind_of_its_name(install: Callable[..., None]) -> None:
    install(broken="landbridge.targets.text:parse")
    with pytest.raises(TargetError, match="must name a TargetKind"):
        registry.get_kind("broken")


def test_one_broken_plugin_does_not_break_the_rest(install: Callable[..., None]) -> None:
    install(broken="no_such_package_of_tests:KIND")
    with pytest.raises(TargetError, match=r"does not import.*no_such_package_of_tests"):
        registry.get_kind("broken")
    assert "broken" in registry.names()
    assert registry.kind_for_device("cpu") == "llvm"
    assert Target("llvm -mcpu=generic").kind == "llvm"


def test_a_kind_found_as_a_plugin_is_loaded_once(install: Callable[..., None]) -> None:
    install(plugged=f"{__name__}:PLUGGED")
    assert registry.get_kind("plugged") is PLUGGED
    assert Target("plugged").device_types == ("plugged",)


PLUGGED = TargetKind("plugged", "a plugin for tests", (), ("plugged",))


def test_parse_keeps_values_as_text() -> None:
    assert text.parse("llvm --mcpu='a b' -fast") == {"kind": "llvm", "mcpu": "a b", "fast": True}


def test_a_tag_that_is_nearly_one_is_told() -> None:
    with pytest.raises(TargetError, match=r"unknown target kind 'rpi5'.*Nor is it a tag; legal: .*raspberry-pi-5, "):
        Target("rpi5")
    with pytest.raises(TargetError, match=r"unknown target kind 'raspberry-pi-6'.*did you mean 'raspberry-pi-5'"):
        Target("raspberry-pi-6")
