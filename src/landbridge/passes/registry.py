"""The registry of passes by name, and their pipelines.

A pass is a function ``(IRModule) -> IRModule | None`` that changes the module it is given, or returns another.
``landbridge opt --list`` shows its docstring's first line. Each lives in a module of this package and is found there,
so that a new pass needs only a new file.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from importlib import import_module
from pathlib import Path
from typing import TypeAlias

from landbridge.errors import CompileError, VerifyError
from landbridge.files.output_file import check_folder, make_folder, write_text
from landbridge.ir.limits import check_time
from landbridge.ir.module import IRModule
from landbridge.ir.verifier import KnownTypes, verify
from landbridge.passes.rewrites import Rewrite, imported_rewrites, without
from landbridge.plugins import import_modules
from landbridge.records import record
from landbridge.reporting.stages import begin_stage
from landbridge.text.did_you_mean import did_you_mean

PassFunction: TypeAlias = Callable[[IRModule], IRModule | None]

_PACKAGE = "landbridge.passes"
_passes: dict[str, Pass] = {}


@record(frozen=True)
class Pass:
    """A named step of the compiler. ``doc`` is its first line of documentation."""

    name: str
    function: PassFunction
    doc: str

    def __call__(self, module: IRModule) -> IRModule:
        """Run the pass and return the module to go on with."""
        return self.function(module) or module


def register_pass(name: str) -> Callable[[PassFunction], PassFunction]:
    """Returns a decorator that registers a function as the pass ``name``; raises CompileError if the name is taken."""

    def register(function: PassFunction) -> PassFunction:
        known = _passes.get(name)
        if known is not None and known.function.__qualname__ != function.__qualname__:
            raise CompileError(f"two passes are called {name!r}; rename one")
        doc = (function.__doc__ or "").strip().partition("\n")[0]
        _passes[name] = Pass(name, function, doc)
        return function

    return register


def names() -> list[str]:
    """Returns the name of every pass, sorted."""
    _import_all()
    return sorted(_passes)


def get(name: str) -> Pass:
    """Returns the pass called ``name``; raises CompileError naming those that exist."""
    if name not in _passes:
        module = f"{_PACKAGE}.{name}"
        try:
            import_module(module)
        except ModuleNotFoundError as error:
            if not f"{module}.".startswith(f"{error.name}."):  # one of its imports is missing
                raise
    if name not in _passes:
        _import_all()
    try:
        return _passes[name]
    except KeyError:
        raise CompileError(f"there is no pass {name!r}; legal: {', '.join(sorted(_passes))}") from None


def rewrites(step: str | None = None) -> list[Rewrite]:
    """Returns the named rewrites of the pass ``step``, or of all passes, sorted by name."""
    _import_all()
    return [each for each in imported_rewrites() if step is None or each.name.startswith(f"{step}.")]


def run_pipeline(
    module: IRModule,
    pipeline: Sequence[str],
    dump: Path | None = None,
    seconds: dict[str, float] | None = None,
    sources: Sequence[str] = (),
    every: bool = True,
    disabled: Collection[str] = (),
) -> IRModule:
    """Run passes in order, verify after each, and return the last module.

    Without ``every`` only three modules are verified: the first, the last of tensors (before ``bufferize``) and the
    last of all. The result is the same; a broken invariant is found later, and its pass is not known.

    ``dump``: a directory that receives the IR after each pass, ``00-import.mlir`` first. ``seconds`` receives the time
    of each pass, summed over repeats. ``sources``: the files that ``module`` comes from, which no dump replaces.
    ``disabled``: names of rewrites that are not done; what a later pass needs of them is missing then. Before anything
    runs, raises CompileError for an unknown name and OutputFileError for a directory that takes no files.
    Raises VerifyError naming the pass that broke the IR.
    """
    steps = [get(name) for name in pipeline]
    _check_rewrites(disabled)
    if dump is not None:
        check_folder(dump)
    known = KnownTypes()
    verify(module, "import", known)
    _dump(module, dump, 0, "import", sources)
    for number, step in enumerate(steps, 1):
        begin_stage(step.name)
        check_time(f"pass {step.name}")
        began = time.perf_counter()
        with without(disabled):
            module = step(module)
        if every or number == len(steps) or steps[number].name == "bufferize":
            _verify(module, step.name, known, every)
        if seconds is not None:
            seconds[step.name] = seconds.get(step.name, 0.0) + time.perf_counter() - began
        _dump(module, dump, number, step.name, sources)
    return module


def _check_rewrites(names: Collection[str]) -> None:
    known = [each.name for each in rewrites()] if names else []
    for name in names:
        if name not in known:
            raise CompileError(f"there is no rewrite {name!r}{did_you_mean(name, known)}; legal: {', '.join(known)}")


def _verify(module: IRModule, name: str, known: KnownTypes, every: bool) -> None:
    """Raises VerifyError that names the pass ``name``, and how to find which one it was without ``every``."""
    try:
        verify(module, name, known)
    except VerifyError as error:
        if every:
            raise
        raise VerifyError(f"{error}; it or a pass before it did this: dump=FOLDER verifies after every pass") from error


def _dump(module: IRModule, directory: Path | None, number: int, name: str, sources: Sequence[str]) -> None:
    if directory is not None:
        make_folder(directory)
        write_text(directory / f"{number:02d}-{name}.mlir", module.print(), sources)


def _import_all() -> None:
    import_modules(_PACKAGE)
