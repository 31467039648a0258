"""Dataclasses that take a fifth of the time to define: 0.07 ms a class, where ``dataclasses`` takes 0.34 ms.

``import Session`` defines 53 of them and the compiler 300, so that this is 10 ms of the one and 40 ms of the other
(benchmarks/results/no_magic.md). ``dataclasses`` generates the source of up to six methods of each class and executes
each. A ``record`` generates that of ``__init__`` alone, as an ``__init__`` that reads the fields by name would take
longer for each object. Its other methods are ordinary functions. tests/test_records.py and
tests/package/test_records.py compare records with dataclasses, and the times of both.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["record"]


class _Factory:
    """Stands in a signature for the default of a field that a factory makes."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()
_OPTIONS = {"init", "repr", "eq", "frozen", "slots"}


def _record(cls: type[Any] | None = None, /, **options: bool) -> Any:
    """Returns ``cls`` as a dataclass with the options of ``dataclasses.dataclass``, except ``InitVar``, and known to
    the functions of ``dataclasses``. A class with a dataclass as base, or with an order, is made by ``dataclasses``.
    """
    if cls is None:
        return lambda cls: _record(cls, **options)
    if not options.keys() <= _OPTIONS or any("__dataclass_fields__" in vars(base) for base in cls.__mro__[1:]):
        return dataclasses.dataclass(**options)(cls)
    frozen, eq = options.get("frozen", False), options.get("eq", True)
    owned = dict(vars(cls))
    has_hash = owned.get("__hash__") is not None or ("__hash__" in owned and "__eq__" not in owned)
    if owned.get("__doc__") is None:
        cls.__doc__ = cls.__name__  # else dataclasses makes one from the signature, which takes as long as the class
    slots = options.get("slots", False)
    cls = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
    fields = dataclasses.fields(cls)
    created: dict[str, Any] = {}
    if options.get("init", True):
        created["__init__"] = _init(cls, fields, frozen)
    if options.get("repr", True):
        created["__repr__"] = _repr
    if eq:
        created["__eq__"] = _eq(tuple(f.name for f in fields if f.compare))
    if frozen and slots:
        created |= {"__getstate__": _state, "__setstate__": _set_state}
    if eq and not has_hash:
        hashed = tuple(f.name for f in fields if (f.compare if f.hash is None else f.hash))
        cls.__hash__ = _hash(hashed) if frozen else None  # type: ignore[assignment]
    if frozen:
        _freeze(cls, frozenset(f.name for f in fields))
    for name, function in created.items():
        if name not in owned:
            setattr(cls, name, function)
    parameters = cls.__dataclass_params__
    for name in ("init", "repr", "eq", "frozen"):
        setattr(parameters, name, options.get(name, name != "frozen"))
    return cls


if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:
    record = _record


def _init(cls: type[Any], fields: tuple[dataclasses.Field[Any], ...], frozen: bool) -> Callable[..., None]:
    """Returns the ``__init__`` of ``cls``: its fields in order, keyword-only ones last."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_FACTORY": _FACTORY}
    given: list[str] = []
    named: list[str] = []
    body: list[str] = []
    for f in fields:
        value, default = f.name, ""
        if f.default_factory is not dataclasses.MISSING:
            known[f"_make_{f.name}"] = f.default_factory
            value = f"_make_{f.name}()" + (f" if {f.name} is _FACTORY else {f.name}" if f.init else "")
            default = "=_FACTORY"
        elif f.default is not dataclasses.MISSING:
            known[f"_default_{f.name}"] = f.default
            default = f"=_default_{f.name}"
        if f.init and not f.kw_only and not default and any("=" in each for each in given):
            raise TypeError(f"{cls.__qualname__}: field {f.name!r} has no default, and stands behind one that has")
        if f.init:
            (named if f.kw_only else given).append(f.name + default)
        elif f.default_factory is dataclasses.MISSING:
            continue  # the class has the default
        body.append(f"_set(self,{f.name!r},{value})" if frozen else f"self.{f.name}={value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = ",".join(["self", *given, *(["*", *named] if named else [])])
    # As dataclasses does: the names of fields, which are identifiers, and no text from outside of the class.
    exec(f"def __init__({parameters}):\n " + "\n ".join(body or ["pass"]), known)
    created: Callable[..., None] = known["__init__"]
    created.__qualname__, created.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    created.__annotations__ = {f.name: f.type for f in fields if f.init} | {"return": None}
    return created


def _state(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for f, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, f.name, value)


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _values(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Returns a function that gives the tuple of the attributes ``names`` of an object."""
    if len(names) > 1:
        return attrgetter(*names)
    return (lambda self: (getattr(self, names[0]),)) if names else lambda self: ()


def _eq(names: tuple[str, ...]) -> Callable[[Any, object], bool]:
    values = _values(names)

    def is_equal(self: Any, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented  # type: ignore[no-any-return]
        return values(self) == values(other)

    return is_equal


def _hash(names: tuple[str, ...]) -> Callable[[Any], int]:
    values = _values(names)

    def hashed(self: Any) -> int:
        return hash(values(self))

    return hashed


def _freeze(cls: type[Any], names: frozenset[str]) -> None:
    """Makes attributes of ``cls`` neither settable nor deletable."""

    def set_attribute(self: Any, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def delete_attribute(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    cls.__setattr__ = set_attribute  # type: ignore[assignment]
    cls.__delattr__ = delete_attribute  # type: ignore[assignment]
