"""Classes of ``light_dataclass`` behave as those of the standard library, which is asked beside it."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import field
from itertools import product
from typing import Any

import pytest

from landbridge import light_dataclass

Decorator = Callable[..., Any]
OPTIONS = [
    dict(zip(("repr", "eq", "frozen", "slots", "kw_only"), values, strict=True))
    for values in product((True, False), repeat=5)
]


def made(decorate: Decorator, options: dict[str, bool]) -> Any:
    @decorate(**options)
    class Made:
        """Fields of every kind."""

        a: int
        b: str = "b"
        c: list[int] = field(default_factory=list)
        d: int = field(default=4, repr=False, compare=False)
        e: int = field(default=5, init=False)
        f: int = field(default=6, kw_only=True)

        def __post_init__(self) -> None:
            object.__setattr__(self, "c", [*self.c, 0])

    return Made


def outcome(action: Callable[[], Any]) -> str:
    """What ``action`` gives, or raises, as text."""
    try:
        return repr(action())
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def behaviour(decorate: Decorator, options: dict[str, bool]) -> list[str]:
    cls = made(decorate, options)
    shown = [str(inspect.signature(cls)), repr(cls.__dataclass_params__)]
    given: dict[str, Any] = {"a": 1, "c": [2]}
    x, y = cls(**given), cls(**given, d=9)
    shown += [outcome(lambda: cls(1, "x", [3], 7).b), outcome(cls), outcome(lambda: cls(1, e=2))]
    shown += [outcome(lambda: x == y), outcome(lambda: x == cls(a=2)), outcome(lambda: x == 3)]
    shown += [outcome(lambda: type(hash(x))), outcome(lambda: dataclasses.asdict(x))]
    shown += [outcome(lambda: dataclasses.replace(x, a=3).a), outcome(lambda: copy.copy(x).c)]
    shown += [outcome(lambda: setattr(x, "a", 8)), outcome(lambda: delattr(x, "b")), outcome(lambda: x.a)]
    shown += [outcome(lambda: repr(x))] if options["repr"] else []
    shown += [outcome(lambda: vars(x)), repr(cls.__match_args__), repr([f.name for f in dataclasses.fields(cls)])]
    return [text.replace("made.<locals>.", "") for text in shown]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(n for n, on in options.items() if on))
def test_all_options_do_what_they_do_in_the_standard_library(options: dict[str, bool]) -> None:
    assert behaviour(light_dataclass.dataclass, options) == behaviour(dataclasses.dataclass, options)


def family(decorate: Decorator, frozen: bool) -> list[str]:
    @decorate(frozen=frozen)
    class Base:
        a: int
        b: int = 2

        def __eq__(self, other: object) -> bool:
            return True

    @decorate(frozen=frozen)
    class Derived(Base):
        b: int = 3
        c: int = 4

        def __hash__(self) -> int:
            return 7

    class Plain(Derived):
        pass

    each = [Base(1), Derived(1, 5), Plain(1)]
    shown = [repr(x) for x in each] + [outcome(lambda x=x: type(hash(x))) for x in each]
    shown += [outcome(lambda x=x, name=name: setattr(x, name, 0)) for x in each for name in ("a", "new")]
    shown += [str(inspect.signature(cls)) for cls in (Base, Derived, Plain)]
    return [text.replace("family.<locals>.", "") for text in [*shown, repr(each[0] == each[1]), repr(each[1] == 1)]]


@pytest.mark.parametrize("frozen", [True, False])
def test_inheritance_is_as_in_the_standard_library(frozen: bool) -> None:
    assert family(light_dataclass.dataclass, frozen) == family(dataclasses.dataclass, frozen)


def test_a_signature_is_known_before_and_after_the_first_instance() -> None:
    cls = made(light_dataclass.dataclass, {})
    before = inspect.signature(cls)
    cls(1)
    assert inspect.signature(cls) == before
    assert "__signature__" not in vars(cls)


def test_a_class_that_holds_itself_is_shown() -> None:
    @light_dataclass.dataclass
    class Ring:
        next: Any

    ring = Ring(None)
    ring.next = ring
    assert repr(ring).endswith("Ring(next=...)")


@light_dataclass.dataclass(frozen=True)
class Open:
    a: int


@light_dataclass.dataclass(frozen=True, slots=True)
class Closed:
    a: int
    b: int = 2


@pytest.mark.parametrize("value", [Open(1), Closed(1)])
def test_frozen_ones_are_pickled(value: Any) -> None:
    again = pickle.loads(pickle.dumps(value))
    assert again == value
    assert hash(again) == hash(value)
    with pytest.raises(dataclasses.FrozenInstanceError):
        again.a = 3
