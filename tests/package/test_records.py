"""The records of the package are what ``dataclasses`` makes of the same fields, and take much less time to define."""

from __future__ import annotations

import dataclasses
import inspect
import time
from collections.abc import Callable, Iterator
from typing import Any

from landbridge.records import record
from tests.package.test_dataclass_equality import dataclasses_of_the_package


def records() -> Iterator[type[Any]]:
    """The classes of the package whose methods ``landbridge.records`` made."""
    for cls, _ in dataclasses_of_the_package():
        bases = [base for base in cls.__mro__[1:] if dataclasses.is_dataclass(base)]
        if cls.__module__.startswith("landbridge.") and not bases:
            yield cls


def twin(cls: type[Any]) -> type[Any]:
    """A class with the fields and methods of ``cls``, made by ``dataclasses``."""
    options = {name: getattr(cls.__dataclass_params__, name) for name in ("init", "repr", "eq", "frozen")}
    fields = [
        (
            f.name,
            f.type,
            dataclasses.field(
                **({} if f.default is dataclasses.MISSING else {"default": f.default}),
                **({} if f.default_factory is dataclasses.MISSING else {"default_factory": f.default_factory}),
                init=f.init,
                repr=f.repr,
                hash=f.hash,
                compare=f.compare,
                kw_only=f.kw_only,
            ),
        )
        for f in dataclasses.fields(cls)
    ]
    owned = {name: vars(cls)[name] for name in ("__post_init__",) if name in vars(cls)}
    return dataclasses.make_dataclass(cls.__name__, fields, namespace=owned, **options)


def test_records_are_what_dataclasses_makes_of_their_fields():
    compared = 0
    for cls in records():
        wanted = twin(cls)
        if "_set" in getattr(cls.__init__, "__globals__", ()):  # made by records.py
            compared += 1
            assert str(inspect.signature(cls.__init__)) == str(inspect.signature(wanted.__init__)), cls
        assert cls.__match_args__ == wanted.__match_args__, cls
        if "__eq__" not in vars(cls) or cls.__eq__.__module__ == "landbridge.records":
            assert (cls.__hash__ is None) == (wanted.__hash__ is None), cls
            assert (cls.__eq__ is object.__eq__) == (wanted.__eq__ is object.__eq__), cls
    assert compared > 200


def defined(created_by: Callable[..., Any], count: int = 40) -> float:
    """The processor time of defining ``count`` classes, in seconds."""
    start = time.process_time()
    for _ in range(count):

        @created_by(frozen=True)
        class Point:
            """Three fields."""

            x: int
            y: float = 0.5
            names: tuple[str, ...] = ()

    return time.process_time() - start


def test_a_record_takes_less_than_half_of_the_time_of_a_dataclass():
    """It takes a fifth. Where this fails, ``dataclasses`` has become as fast, and records.py should go."""
    assert min(defined(record) for _ in range(5)) < 0.5 * min(defined(dataclasses.dataclass) for _ in range(5))
