"""Conversions between plain data (numbers, strings, lists and dictionaries of them) and attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FloatAttr, IntegerAttr, StringAttr, f64, i1, i64
from xdsl.ir import Attribute, Operation

from landbridge.errors import CompileError
from landbridge.ir.types import SizeAttr
from landbridge.sizes.size import Extent, Size


@lru_cache(maxsize=4096)
def int_attr(value: Extent) -> Attribute:
    """Returns an integer as an attribute; a Size becomes ``lb.size``."""
    return SizeAttr(value) if isinstance(value, Size) else IntegerAttr(value, i64)


def int_of(attr: Attribute) -> int:
    """Returns the integer of an attribute that ``int_attr`` made."""
    if type(attr) is IntegerAttr:  # isinstance takes ten times as long for a negative answer
        return attr.value.data
    if type(attr) is SizeAttr:
        return cast(int, attr.data)
    raise CompileError(f"{attr} is not an integer")


def int_array(values: Sequence[Extent]) -> ArrayAttr[Any]:
    """Returns ``[1, 2, 3]`` as an attribute; a Size becomes ``lb.size``."""
    return _int_array(tuple(values))


@lru_cache(maxsize=4096)
def _int_array(values: tuple[Extent, ...]) -> ArrayAttr[Any]:
    return ArrayAttr(map(int_attr, values))


def ints(attr: ArrayAttr[Any]) -> tuple[int, ...]:
    """Returns the integers of an attribute that ``int_array`` made."""
    return tuple(map(int_of, attr))


def plain_attribute(value: Any) -> Attribute:
    """Returns plain data (numbers, text, lists and dictionaries of them) as an attribute; raises CompileError for other
    values."""
    if isinstance(value, bool):
        return IntegerAttr(int(value), i1)
    if isinstance(value, int):
        return IntegerAttr(value, i64)
    if isinstance(value, float):
        return FloatAttr(value, f64)
    if isinstance(value, str):
        return StringAttr(value)
    if isinstance(value, list | tuple):
        return ArrayAttr([plain_attribute(each) for each in value])
    if isinstance(value, Mapping):
        return DictionaryAttr({str(name): plain_attribute(each) for name, each in value.items()})
    raise CompileError(f"{value!r:.60} is not plain data; numbers, text and lists of them are legal")


def plain_data(attribute: Attribute) -> Any:
    """Returns an attribute as plain data: numbers, text, lists and dictionaries of them; raises CompileError for
    another."""
    if isinstance(attribute, IntegerAttr) and attribute.type == i1:
        return bool(attribute.value.data)
    if isinstance(attribute, IntegerAttr | FloatAttr):
        return attribute.value.data
    if isinstance(attribute, StringAttr):
        return attribute.data
    if isinstance(attribute, ArrayAttr):
        return [plain_data(item) for item in attribute.data]
    if isinstance(attribute, DictionaryAttr):
        return {key: plain_data(value) for key, value in attribute.data.items()}
    raise CompileError(f"attribute {attribute} of a host call is not plain data; legal: numbers, text, lists of them")


def integer_at(op: Operation, key: str) -> int | None:
    """Returns the integer attribute ``key`` of ``op``; None without one."""
    number = op.attributes.get(key)
    return int_of(number) if number is not None and isinstance(number, IntegerAttr | SizeAttr) else None


def strings_at(op: Operation, key: str) -> tuple[str, ...] | None:
    """Returns the strings of the attribute ``key`` of ``op``; None without them."""
    names = op.attributes.get(key)
    return tuple(a.data for a in names if isinstance(a, StringAttr)) if isinstance(names, ArrayAttr) else None


def string_array(names: Sequence[str]) -> ArrayAttr[StringAttr]:
    """Returns strings as an attribute."""
    return ArrayAttr([StringAttr(name) for name in names])


def dictionary_at(op: Operation, key: str) -> Mapping[str, Attribute]:
    """Returns the dictionary attribute ``key`` of ``op``; empty without it. Raises CompileError where it is none."""
    found = op.attributes.get(key)
    if found is not None and not isinstance(found, DictionaryAttr):
        raise CompileError(f"attribute {key} is {found}; legal: a dictionary, as {{name = value}}")
    return {} if found is None else found.data
