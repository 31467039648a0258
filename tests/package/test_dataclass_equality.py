"""What has arrays is not compared field by field: ``==`` of two arrays is an array, which is neither true nor false."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import walk_packages
from typing import Any, get_origin

import numpy as np

import landbridge as lb


def compared_arrays(owner: type, names: dict[str, Any]) -> list[str]:
    """The fields of a dataclass that its generated ``==`` compares and whose annotation has ``np.ndarray`` in it."""
    if not owner.__dict__["__dataclass_params__"].eq:
        return []
    return [
        field.name
        for field in dataclasses.fields(owner)
        if field.compare and any("ndarray" in text for text in _spelled(str(field.type), names))
    ]


def _spelled(annotation: str, names: dict[str, Any]) -> Iterator[str]:
    """``annotation``, and what the aliases in it stand for."""
    yield annotation
    for word in re.findall(r"\w+", annotation):
        meaning = names.get(word)
        if meaning is not None and not inspect.isclass(meaning) and get_origin(meaning) is not Callable:
            yield repr(meaning)


#: What a few modules need and the extra ``test`` does not bring; in CI they are there in the end.
_EXTRAS = ("torch", "onnxscript", "ray")


def dataclasses_of_the_package() -> Iterator[tuple[type, dict[str, Any]]]:
    for found in walk_packages(lb.__path__, "landbridge."):
        if "template" in found.name or found.name.endswith("__main__"):
            continue
        try:
            names = vars(import_module(found.name))
        except ModuleNotFoundError as error:
            if error.name not in _EXTRAS:
                raise
            continue
        for value in list(names.values()):
            if inspect.isclass(value) and value.__module__ == found.name and "__dataclass_params__" in vars(value):
                yield value, names


def test_no_generated_equality_compares_arrays() -> None:
    found = list(dataclasses_of_the_package())
    assert len(found) > 100
    wrong = {f"{owner.__module__}.{owner.__name__}": compared_arrays(owner, names) for owner, names in found}
    assert not {name: fields for name, fields in wrong.items() if fields}


def test_the_check_sees_an_array_behind_an_alias() -> None:
    names = {"Alias": np.ndarray[Any, Any]}
    made = dataclasses.make_dataclass("Made", [("a", "dict[str, Alias]"), ("b", int)])
    assert compared_arrays(made, names) == ["a"]
    assert compared_arrays(dataclasses.make_dataclass("Made", [("a", "Alias")], eq=False), names) == []
