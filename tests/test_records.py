"""Records are what ``dataclasses`` makes of the same classes, in all that can be asked of them."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import field
from typing import Any, ClassVar

import pytest

from landbridge.records import record

Decorator = Callable[..., Any]


def classes(created_by: Decorator) -> dict[str, type[Any]]:
    """The same classes, by another decorator; what they share is compared."""

    @created_by(frozen=True)
    class Point:
        """A point."""

        kind: ClassVar[str] = "p"
        x: int
        y: float = 0.5
        names: list[str] = field(default_factory=list, compare=False)
        hidden: int = field(default=3, repr=False)

    @created_by(frozen=True)
    class Checked:
        """Counts."""

        size: int
        twice: int = field(init=False)

        def __post_init__(self) -> None:
            if self.size < 0:
                raise ValueError("negative")
            object.__setattr__(self, "twice", 2 * self.size)

    @created_by
    class Mutable:
        """Changes."""

        a: int
        b: int = field(default=1, kw_only=True)
        c: list[int] = field(init=False, default_factory=lambda: [1])

    @created_by(frozen=True, eq=False, repr=False)
    class Identity:
        """Itself alone."""

        a: int

    @created_by(frozen=True, slots=True)
    class Slotted:
        """Without a dictionary."""

        a: int
        b: int = 2

    @created_by(frozen=True)
    class Own:
        """With methods of its own."""

        a: int

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 5

        def __repr__(self) -> str:
            return "own"

    @created_by(frozen=True)
    class Empty:
        """Nothing."""

    @created_by(frozen=True, order=True)
    class Ordered:
        """By size."""

        a: int

    return {c.__name__: c for c in (Point, Checked, Mutable, Identity, Slotted, Own, Empty, Ordered)}


THEIRS, OURS = classes(dataclasses.dataclass), classes(record)
ARGUMENTS: dict[str, list[tuple[Any, ...]]] = {
    "Point": [(1,), (1, 2.5), (1, 0.5, ["a"]), (1, 0.5, [], 4)],
    "Checked": [(1,), (2,)],
    "Mutable": [(1,), (2,)],
    "Identity": [(1,), (2,)],
    "Slotted": [(1,), (1, 3)],
    "Own": [(1,), (2,)],
    "Empty": [()],
    "Ordered": [(1,), (2,)],
}


@pytest.mark.parametrize("name", THEIRS)
def test_objects_are_same(name):
    theirs, ours = ([cls(*each) for each in ARGUMENTS[name]] for cls in (THEIRS[name], OURS[name]))
    if name != "Identity":
        assert list(map(repr, ours)) == [text.replace("dataclass", "record") for text in map(repr, theirs)]
    assert [[a == b for b in ours] for a in ours] == [[a == b for b in theirs] for a in theirs]
    assert [a == b for a, b in zip(ours, theirs, strict=True)] == [name == "Own"] * len(ours)
    assert [dataclasses.asdict(each) for each in ours] == [dataclasses.asdict(each) for each in theirs]
    assert [copy.copy(each) == each for each in ours] == [copy.copy(each) == each for each in theirs]
    if THEIRS[name].__hash__ is None:
        assert OURS[name].__hash__ is None
    elif name != "Identity":
        assert list(map(hash, ours)) == list(map(hash, theirs))


@pytest.mark.parametrize("name", THEIRS)
def test_classes_are_same(name):
    theirs, ours = THEIRS[name], OURS[name]
    assert str(inspect.signature(ours)) == str(inspect.signature(theirs))
    assert ours.__doc__ == theirs.__doc__
    assert ours.__match_args__ == theirs.__match_args__
    assert repr(ours.__dataclass_params__) == repr(theirs.__dataclass_params__)
    assert [f.name for f in dataclasses.fields(ours)] == [f.name for f in dataclasses.fields(theirs)]


@pytest.mark.parametrize("name", ["Point", "Checked", "Identity", "Slotted", "Own", "Ordered"])
def test_what_is_frozen_is_not_set(name):
    for cls in (THEIRS[name], OURS[name]):
        made = cls(1)
        first = dataclasses.fields(cls)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError, match=f"assign to field '{first}'"):
            setattr(made, first, 2)
        with pytest.raises(dataclasses.FrozenInstanceError, match=f"delete field '{first}'"):
            delattr(made, first)


def test_replace_makes_and_checks_anew():
    made = OURS["Checked"](4)
    with pytest.raises(ValueError, match="negative"):
        OURS["Checked"](-1)
    point = dataclasses.replace(OURS["Point"](1), y=2.0)
    assert (made.twice, point.x, point.y, point.names) == (8, 1, 2.0, [])
    with pytest.raises(TypeError, match="positional"):
        OURS["Mutable"](1, 2)
    assert OURS["Mutable"](1).c is not OURS["Mutable"](1).c


@record(frozen=True, slots=True)
class Pickled:
    """At a place where pickle finds it."""

    a: int
    again: Pickled | None = None


@record(frozen=True)
class Base:
    """What others come from."""

    a: int


@record(frozen=True)
class Derived(Base):
    """One field more."""

    b: int = 2


def test_slots_are_pickled():
    made = Pickled(1, Pickled(2))
    assert pickle.loads(pickle.dumps(made)) == made
    assert not hasattr(made, "__dict__")


def test_a_class_of_a_record_is_a_dataclass():
    assert repr(Derived(1)) == "Derived(a=1, b=2)"
    assert Derived(1) != Base(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Derived(1).a = 2  # type: ignore[misc]


def test_what_has_no_default_comes_first():
    with pytest.raises(TypeError, match="'b' has no default"):

        @record
        class Wrong:
            a: int = 0
            b: str


def test_what_holds_itself_is_shown():
    made = OURS["Point"](1)
    made.names.append(made)
    assert "..." in repr(made)
