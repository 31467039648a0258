"""Modules that another package imports and hardly ever uses, loaded when something of them is used.

onnx_ir imports sympy, which takes 0.3 s of every compile and which nothing of ours uses. Such a module stands in
``sys.modules`` with a ``__getattr__`` of its own (PEP 562), which loads it into the same module object.

``importlib.util.LazyLoader`` does not serve here: ``import`` looks at the specification of what is there already,
which loads its modules.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

from landbridge.process.locks import new_lock

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
            _await_use(module)
            sys.modules[name] = module


def _spec(name: str) -> ModuleSpec | None:
    package = name.rpartition(".")[0]
    if not package:
        return find_spec(name)
    found = find_spec(package)
    return None if found is None else PathFinder.find_spec(name, found.submodule_search_locations)


def _await_use(module: ModuleType) -> None:
    """Give ``module`` a ``__getattr__`` that loads it; loading removes or replaces that."""

    def load_and_get(name: str) -> Any:
        waited = _loading.acquire(timeout=_PATIENCE)
        try:
            if vars(module).get("__getattr__") is load_and_get and "__path__" not in vars(module):
                _load(module)
        finally:
            if waited:
                _loading.release()
        try:
            return vars(module)[name]
        except KeyError:
            owned = vars(module).get("__getattr__", load_and_get)
            if owned is not load_and_get:  # the module computes attributes itself
                return owned(name)
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}") from None

    vars(module)["__getattr__"] = load_and_get


def _load(module: ModuleType) -> None:
    spec = module.__spec__
    assert spec is not None
    assert spec.loader is not None
    load_and_get = vars(module)["__getattr__"]
    # As one that is being loaded: what it imports may import it again.
    module.__path__ = spec.submodule_search_locations or []
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del module.__path__
        vars(module)["__getattr__"] = load_and_get
        raise
    if spec.submodule_search_locations is None:
        del module.__path__
    if vars(module)["__getattr__"] is load_and_get:
        del vars(module)["__getattr__"]
