"""Installs Landbridge as ``onnxruntime`` for programs whose imports cannot be changed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

_OURS = "landbridge.onnxruntime"
_THEIRS = "onnxruntime"

#: Packages of onnxruntime, in Python, that change models, and run them by ``import onnxruntime``.
_TOOLS = frozenset({"backend", "quantization", "tools", "transformers"})


def install_as_onnxruntime() -> None:
    """Makes every later ``import onnxruntime`` of this process find ``landbridge.onnxruntime``.

    For packages of others that import onnxruntime themselves; ``python -m landbridge.onnxruntime PROGRAM`` does it for
    a whole program. Its ``quantization``, ``tools``, ``transformers`` and ``backend`` are those of an installed
    onnxruntime, and run models on Landbridge. Raises RuntimeError where onnxruntime was imported before, as its
    importers would keep it.
    """
    found = sys.modules.get(_THEIRS)
    if found is not None and found.__name__ != _OURS:
        raise RuntimeError(
            "onnxruntime is imported already, and modules that imported it would keep using it; call "
            "install_as_onnxruntime() before the imports of other packages, or run the program by python -m "
            "landbridge.onnxruntime"
        )
    sys.modules[_THEIRS] = importlib.import_module(_OURS)
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def folder_of_theirs() -> Path | None:
    """Returns the folder of the installed package onnxruntime, also while Landbridge is imported under that name; None
    where it is not installed.
    """
    spec = PathFinder.find_spec(_THEIRS)
    return Path(spec.origin).parent if spec is not None and spec.origin else None


class _Finder(MetaPathFinder):
    """Finds modules ``onnxruntime.X``. They are those of ``landbridge.onnxruntime``, the same objects, as a second
    import would make second classes; the packages in ``_TOOLS`` are those of an installed onnxruntime.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, name = fullname.partition(".")
        if package != _THEIRS or not name:
            return None
        if name.partition(".")[0] in _TOOLS:
            return _of_theirs(fullname, name) if name in _TOOLS else None  # a module in it is found by its path
        try:
            ours = importlib.import_module(f"{_OURS}.{name}")
        except ModuleNotFoundError as error:
            if error.name is not None and f"{_OURS}.{name}".startswith(error.name):
                return None
            raise
        return ModuleSpec(fullname, _Known(ours), is_package=hasattr(ours, "__path__"))


def _of_theirs(fullname: str, name: str) -> ModuleSpec:
    folder = folder_of_theirs()
    if folder is None:
        raise ModuleNotFoundError(
            f"{fullname} is a package of onnxruntime, which is not installed: pip install onnxruntime; models go on to "
            "run on Landbridge",
            name=fullname,
        )
    spec = PathFinder.find_spec(fullname, [str(folder)])
    if spec is None:
        raise ModuleNotFoundError(f"the onnxruntime in {folder} has no package {name!r}", name=fullname)
    return spec


class _Known(Loader):
    """Loader that returns ``module``, which is imported already, without executing it again."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._text: dict[str, Any] = {name: getattr(module, name) for name in ("__spec__", "__loader__")}

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        vars(module).update(self._text)  # the import system replaced the module's own spec
