"""The JSON form of frozen dataclasses, read back with every type and range checked.

A reader is built once per type from its annotations. Integers are counts, offsets, sizes or register
numbers: never negative, below 2**63. An Instruction is a list: its opcode, then its fields in order. Where a program
may be open, a Size is text: of itself (``size_form``), or its number in a table (``size_table``). A float that is not
finite is ``{"": "nan"}``.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from math import isfinite
from typing import Any, TypeVar, Union, cast

from landbridge.errors import ExecutableError, ShapeError
from landbridge.executable import instructions as ins
from landbridge.executable.device_image import Launch, LaunchSequence
from landbridge.executable.parts import KernelFacts, SizeGuard, StateGrowth, StorageReport, TensorSpec

T = TypeVar("T")
#: Returns the Size that a text stands for; raises ShapeError or KeyError where it stands for none.
ReadSize = Callable[[str], Any]
#: Returns a value read from plain JSON data, with what reads the texts of its Sizes.
Reader = Callable[[Any, ReadSize], Any]

_OPCODES: dict[str, type[Any]] = {
    "alloc_storage": ins.AllocStorage,
    "alloc_tensor": ins.AllocTensor,
    "load_constant": ins.LoadConstant,
    "view": ins.View,
    "call": ins.Call,
    "host_call": ins.HostCall,
    "to_vdevice": ins.ToVDevice,
    "if": ins.If,
    "loop": ins.Loop,
    "prepared": ins.Prepared,
}
#: Where a Size may stand.
_OPEN: dict[type[Any], tuple[str, ...]] = {
    ins.AllocStorage: ("nbytes", "shape"),
    ins.AllocTensor: ("offset", "shape"),
    ins.View: ("offset", "shape"),
    ins.Call: ("tasks", "moves_bytes", "sizes"),
    ins.Slice: ("first", "stride", "shape"),
    ins.Loop: ("trips",),
    Launch: ("grid",),
    LaunchSequence: ("scratch",),
    TensorSpec: ("shape", "strides", "elements"),
    StorageReport: ("planned_bytes",),
    KernelFacts: ("flops", "nbytes"),
    StateGrowth: ("before", "after"),
    SizeGuard: ("found", "legal"),
}
#: Above every count.
_END = 1 << 63
_NAMES = {cls: name for name, cls in _OPCODES.items()}


def to_json(value: Any, text_of: Callable[[Any], str] | None = None) -> Any:
    """Returns ``value`` (dataclasses, tuples, mappings, numbers, strings) as plain JSON data.

    ``text_of`` returns the text of a Size; without it that is its own, which ``from_json`` reads by itself.
    """
    if is_dataclass(value) and not isinstance(value, type):
        cls = type(value)
        content = {f.name: to_json(getattr(value, f.name), text_of) for f in fields(cls)}
        if cls is TensorSpec and not content["axis_separators"]:
            del content["axis_separators"]  # formats before ROWS_VERSION do not have it
        return [_NAMES[cls], *content.values()] if cls in _NAMES else content
    if isinstance(value, Mapping):
        return {str(key): to_json(item, text_of) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_json(item, text_of) for item in value]
    if isinstance(value, float) and not isfinite(value):
        return {"": str(value)}
    if value is None or isinstance(value, str | int | float):
        return value
    if text_of is not None:
        return text_of(value)
    from landbridge.executable.size_form import size_text  # only open programs have Sizes

    return size_text(value)


def size_of_text(text: str) -> Any:
    from landbridge.executable.size_form import read_size  # only open programs have Sizes

    return read_size(text)


def from_json(cls: type[T], value: Any, read_size: ReadSize = size_of_text) -> T:
    """Returns ``value`` (plain JSON data) as a ``cls``; raises ExecutableError where it does not fit.

    ``read_size`` reads the texts that ``to_json`` was given ``text_of`` for.
    """
    reader = _reader(cast(Any, cls))
    return cast(T, reader(value, read_size))


def instruction_list(value: Any, read_size: ReadSize = size_of_text) -> tuple[ins.Instruction, ...]:
    """Returns a JSON list of instructions as a tuple; raises ExecutableError where it is none. ``read_size`` as for
    ``from_json``.
    """
    return tuple([_read_instruction(each, read_size) for each in _read_list(value)])


def _wrong(expected: str, value: Any) -> ExecutableError:
    return ExecutableError(f"corrupt file: expected {expected}, found {str(value)[:60]!r}; save it again")


def _read_count(value: Any, read_size: ReadSize) -> int:
    return _read_int(value)


def _read_int(value: Any) -> int:
    if type(value) is not int or not 0 <= value < _END:
        raise _wrong("a count from 0 to 2**63 - 1", value)
    return value


def _read_ints(value: Any, read_size: ReadSize) -> tuple[int, ...]:
    return tuple([e if type(e) is int and 0 <= e < _END else _read_int(e) for e in _read_list(value)])


def _read_extent(value: Any, read_size: ReadSize) -> Any:
    """Reads a count, or the text of a Size."""
    if type(value) is not str:
        return _read_int(value)
    try:
        return read_size(value)
    except (ShapeError, KeyError) as error:
        raise _wrong(f"a size ({error})", value) from None


def _read_extents(value: Any, read_size: ReadSize) -> Any:
    return tuple([e if type(e) is int and 0 <= e < _END else _read_extent(e, read_size) for e in _read_list(value)])


def _read_value(value: Any, read_size: ReadSize) -> Any:
    """Reads an extent, or a negative number."""
    return -_read_int(-value) if type(value) is int and value < 0 else _read_extent(value, read_size)


def _read_values(value: Any, read_size: ReadSize) -> Any:
    """Reads elements of an input and words of a call: extents, and negative numbers."""
    return tuple([_read_value(each, read_size) for each in _read_list(value)])


def _read_list(value: Any) -> list[Any]:
    if type(value) is not list:
        raise _wrong("a list", value)
    return value


def _read_mapping(value: Any) -> dict[str, Any]:
    if type(value) is not dict:
        raise _wrong("an object", value)
    return value


def _read_object(value: Any, read_size: ReadSize) -> Any:
    """Reads plain data of a host call; a float that JSON lacks is an object of one nameless field."""
    if type(value) is list:
        return [_read_object(item, read_size) for item in value]
    if type(value) is not dict:
        return value
    if value.keys() == {""}:
        if value[""] not in ("nan", "inf", "-inf"):
            raise _wrong("nan, inf or -inf", value[""])
        return float(value[""])
    return {key: _read_object(item, read_size) for key, item in value.items()}


def _plain(cls: type[Any]) -> Reader:
    def read(value: Any, read_size: ReadSize) -> Any:
        if type(value) is not cls:
            raise _wrong(f"a {cls.__name__}", value)
        return value

    return read


#: Readers of what is nearly always a count, which stands for itself.
_COUNTS = frozenset((_read_count, _read_extent))


def _read_instruction(value: Any, read_size: ReadSize) -> Any:
    items = _read_list(value)
    opcode = items[0] if items and type(items[0]) is str else None
    if opcode not in _OPCODES:
        raise _wrong(f"an instruction ({', '.join(_OPCODES)})", items[:1])
    cls, readers, least = _instruction_readers(opcode)
    operands = items[1:]
    if not least <= len(operands) <= len(readers):
        raise _wrong(f"{len(readers)} operands of {opcode}", operands)
    read = zip(readers, operands)  # noqa: B905 - what is left out has a default
    return cls(
        *[e if type(e) is int and 0 <= e < _END and reader in _COUNTS else reader(e, read_size) for reader, e in read]
    )


@cache
def _instruction_readers(opcode: str) -> tuple[type[Any], tuple[Reader, ...], int]:
    """Returns the class, a reader of each operand, and the number of required operands."""
    cls: Any = _OPCODES[opcode]
    return cls, tuple(_field_readers(cls).values()), len(_required(cls))


@cache
def _required(cls: Any) -> frozenset[str]:
    """Returns the fields without a default: a file of an earlier version need not have the others."""
    return frozenset(f.name for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING)


@cache
def _field_readers(cls: Any) -> dict[str, Reader]:
    hints = typing.get_type_hints(cls)  # 0.05 ms a class, once in a process
    readers = {f.name: _reader(hints[f.name]) for f in fields(cls)}
    for name in _OPEN.get(cls, ()):
        readers[name] = _read_extent if hints[name] is int else _read_extents
    if cls is TensorSpec:
        readers["elements"] = _read_values
    if cls is ins.Call:
        readers["sizes"] = _read_values
    if cls is StateGrowth:  # its positions may be those of the last elements
        readers["before"] = _read_value
    return readers


@cache
def _reader(hint: Any) -> Reader:
    """Returns the reader of one annotation; raises TypeError for a type that has none."""
    if hint is int:
        return _read_count
    if hint is str or hint is bool:
        return _plain(hint)
    if hint is object:
        return _read_object
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        if arguments[0] is int:
            return _read_ints
        item = _reader(arguments[0])
        return lambda value, read_size: tuple([item(x, read_size) for x in _read_list(value)])
    if origin in (Mapping, dict):
        entry = _reader(arguments[1])
        return lambda value, read_size: {key: entry(x, read_size) for key, x in _read_mapping(value).items()}
    if origin in (types.UnionType, Union):
        return _read_instruction

    if not is_dataclass(hint):
        raise TypeError(f"a field of type {hint} has no JSON form; add a reader")

    cls: Any = hint

    def read_fields(value: Any, read_size: ReadSize) -> Any:
        # built here, as a class may have fields of its own type
        readers, required = _field_readers(cls), _required(cls)
        content = _read_mapping(value)
        if not required <= content.keys() <= readers.keys():
            raise _wrong(f"the fields {', '.join(readers)}", ", ".join(content))
        return cls(**{name: readers[name](field, read_size) for name, field in content.items()})

    return read_fields
