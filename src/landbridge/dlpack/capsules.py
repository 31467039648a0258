"""Functions of the C API for PyCapsules, with ctypes prototypes that leave those of other callers unchanged."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

_api = ctypes.pythonapi
_object, _pointer, _text, _int = ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int

#: (address, name, destructor) -> capsule; it keeps the pointer to the name, which must therefore live for ever
new: Callable[[int, bytes, int], object] = ctypes.PYFUNCTYPE(_object, _pointer, _text, _pointer)(
    ("PyCapsule_New", _api)
)
#: (capsule, name) -> address
pointer: Callable[[object, bytes], int] = ctypes.PYFUNCTYPE(_pointer, _object, _text)(("PyCapsule_GetPointer", _api))
#: (capsule, name) -> whether the object is a capsule of that name
is_valid: Callable[[object, bytes], int] = ctypes.PYFUNCTYPE(_int, _object, _text)(("PyCapsule_IsValid", _api))
#: (capsule, name): renames the capsule, which keeps the pointer to the name
rename: Callable[[object, bytes], int] = ctypes.PYFUNCTYPE(_int, _object, _text)(("PyCapsule_SetName", _api))

# A destructor gets the capsule while it is being deallocated: the raw pointer must not become a Python object.
dying_is_valid: Callable[[int, bytes], int] = ctypes.PYFUNCTYPE(_int, _pointer, _text)(("PyCapsule_IsValid", _api))
dying_pointer: Callable[[int, bytes], int] = ctypes.PYFUNCTYPE(_pointer, _pointer, _text)(
    ("PyCapsule_GetPointer", _api)
)
