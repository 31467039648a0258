"""Values of which there is one object for equal ones, so that they are compared and hashed as objects are: in C.

Sums of a hundred products are compared and looked up ten thousand times a compile.
"""

from __future__ import annotations

import weakref
from typing import Any

from landbridge.locks import new_lock

_lock = new_lock()
_created: weakref.WeakValueDictionary[tuple[Any, ...], Any] = weakref.WeakValueDictionary()


class Single(type):
    """The class of classes whose instances, which do not change, are single: a call gives the one with those values.

    It lives as long as somebody has it.
    """

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        created = super().__call__(*args, **kwargs)
        key = cls, *vars(created).values()
        with _lock:
            return _created.setdefault(key, created)


def remade(single: Any) -> tuple[Any, tuple[Any, ...]]:
    """What ``__reduce__`` gives of a ``single``: its copies, and what is read from a pickle, are itself."""
    return type(single), tuple(vars(single).values())
