"""ctypes structures with Vulkan's type tag and chain of extensions, and a compact notation for their fields."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any, ClassVar

_TYPES: dict[str, Any] = {
    "u8": ctypes.c_uint8,
    "u32": ctypes.c_uint32,
    "i32": ctypes.c_int32,
    "u64": ctypes.c_uint64,
    "f32": ctypes.c_float,
    "size": ctypes.c_size_t,
    "char": ctypes.c_char,
    "pointer": ctypes.c_void_p,
    "text": ctypes.c_char_p,
}


def layout(text: str, *structures: type[ctypes.Structure]) -> list[tuple[str, Any]]:
    """Returns the ``_fields_`` in ``text``: a word ``type:``, then the names of that type, ``name[n]`` for arrays.

    ``*type:`` is a pointer to it. Types are those above and ``structures`` by their names.
    """
    types = _TYPES | {structure.__name__: structure for structure in structures}
    fields: list[tuple[str, Any]] = []
    kind: Any = None
    for word in text.split():
        if word.endswith(":"):
            kind = types[word.strip("*:")]
            kind = ctypes.POINTER(kind) if word.startswith("*") else kind
            continue
        name, _, extent = word.rstrip("]").partition("[")
        fields.append((name, kind * int(extent) if extent else kind))
    return fields


class Chained(ctypes.Structure):
    """A structure that starts with ``sType`` and ``pNext``; it keeps what it points to alive.

    ``following`` is the next one of the chain (Vulkan 1.3 specification, section 3.7.7 "Extending structures").
    """

    STRUCTURE_TYPE: ClassVar[int]
    _fields_: ClassVar[Any] = [("sType", ctypes.c_uint32), ("pNext", ctypes.c_void_p)]

    def __init__(self, following: Chained | None = None, **values: Any) -> None:
        super().__init__(**values)
        self.sType = self.STRUCTURE_TYPE
        self.following = following
        if following is not None:
            self.pNext = ctypes.addressof(following)


def array(item_type: Any, values: Iterable[Any]) -> Any:
    """Returns a C array of ``values``; assigning it to a pointer of a structure keeps it alive with that structure."""
    items = list(values)
    return (item_type * len(items))(*items)


def handles(*values: int) -> Any:
    """Returns an array of handles that are not pointers (64 bits wide on every platform)."""
    return array(ctypes.c_uint64, values)


def texts(values: Iterable[str]) -> Any:
    """Returns an array of NUL-terminated strings."""
    return array(ctypes.c_char_p, (value.encode() for value in values))
