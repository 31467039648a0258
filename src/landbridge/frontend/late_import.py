"""Modules that another package imports and hardly ever uses, loaded when something of them is used.

``importlib.util.LazyLoader`` is none for this: ``import`` looks at the specification of what is there already, which
loads its modules.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

from landbridge.locks import new_lock

_loading = new_lock()
#: Seconds that a thread waits for another that loads: both may hold a lock of the import system that the other wants.
_PATIENCE = 10.0


def import_late(*names: str) -> None:
    """Let the modules ``names`` be loaded when something of them is used, if none is loaded yet.

    Their packages are not loaded to find them. What is not installed is left to whoever imports it.
    """
    for name in names:
        spec = None if name in sys.modules else _spec(name)
        if spec is not None and spec.loader is not None:
            module = module_from_spec(spec)
            vars(module).pop("__path__", None)  # who imports a part of it asks for that, and needs the whole
            module.__class__ = _Late
            sys.modules[name] = module


def _spec(name: str) -> ModuleSpec | None:
    package = name.rpartition(".")[0]
    if not package:
        return find_spec(name)
    found = find_spec(package)
    return None if found is None else PathFinder.find_spec(name, found.submodule_search_locations)


class _Late(ModuleType):
    """A module that is loaded when an attribute is asked for that it has not yet."""

    def __getattr__(self, name: str) -> Any:
        waited = _loading.acquire(timeout=_PATIENCE)
        try:
            if type(self) is _Late and "__path__" not in vars(self):
                _load(self)
        finally:
            if waited:
                _loading.release()
        try:
            return vars(self)[name]
        except KeyError:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}") from None


def _load(module: ModuleType) -> None:
    spec = module.__spec__
    assert spec is not None
    assert spec.loader is not None
    # As one that is being loaded: what it imports may import it again.
    module.__path__ = spec.submodule_search_locations or []
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del module.__path__
        raise
    if spec.submodule_search_locations is None:
        del module.__path__
    module.__class__ = ModuleType
