"""Hash-consed values: equal values are one object, so they are compared and hashed by identity, in C.

Sums of a hundred products are compared and looked up ten thousand times a compile.
"""

from __future__ import annotations

import weakref
from typing import Any

from landbridge.process.locks import new_lock

_lock = new_lock()
_created: weakref.WeakValueDictionary[tuple[Any, ...], Any] = weakref.WeakValueDictionary()


class Single(type):
    """Metaclass of immutable classes with one instance per value: a call returns the existing instance.

    An instance lives as long as something references it.
    """

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        instance = super().__call__(*args, **kwargs)
        key = cls, *vars(instance).values()
        with _lock:
            return _created.setdefault(key, instance)


def remade(single: Any) -> tuple[Any, tuple[Any, ...]]:
    """Returns the value of ``__reduce__`` for a ``single``: copies and unpickled objects are the same object."""
    return type(single), tuple(vars(single).values())
