"""The registry of code generators by kind of target.

A code generator is a callable ``(module, target) -> ModuleImage``: ``module`` holds lowered functions (dialects
``builtin func arith math scf memref vector``), in the form that the kind of target wants, ``target`` is the Target they
are compiled for. Generators of Landbridge and of plugins register in the same form, as entry points of the group
``landbridge.codegens`` whose name is the target kind; one is imported when its kind is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from landbridge.errors import CodegenError
from landbridge.executable.parts import ModuleImage
from landbridge.plugins import Plugins

if TYPE_CHECKING:
    from landbridge.targets.target import Target


class Codegen(Protocol):
    """Turns lowered functions into the code of one target; raises CodegenError."""

    def __call__(self, module: ModuleOp, target: Target, /) -> ModuleImage: ...


@runtime_checkable
class TargetCheck(Protocol):
    """A generator that can reject targets before it is called: ``check`` raises CodegenError."""

    def check(self, target: Target, /) -> None: ...


@runtime_checkable
class KernelCheck(Protocol):
    """A generator that cannot compile every kernel. A kernel that it declines runs on a CPU, with a warning."""

    def supports(self, prim: FuncOp, target: Target, /) -> str | None:
        """Returns why there is no code of ``prim`` for ``target``, as the end of "on the CPU, as ..."; None when there
        is.

        ``prim`` is a PrimFunc: ``linalg`` on memrefs, before it is lowered. It must not be changed.
        """


class BegunCode(Protocol):
    """The code of one target, which is compiled while functions are still being lowered."""

    def add(self, function: FuncOp, /) -> None:
        """Starts to compile ``function``, which must not change; ``finish`` raises its CodegenError again."""

    def finish(self, module: ModuleOp, /) -> ModuleImage:
        """Returns the code of ``module``, whose functions were added or not; raises CodegenError."""
        ...

    def close(self) -> None:
        """Stops all work of it. It is called once in any case."""


@runtime_checkable
class EarlyCodegen(Protocol):
    """A generator that starts with functions before all of them are lowered."""

    def begin(self, target: Target, count: int, /) -> BegunCode:
        """Starts code of ``target``, to which about ``count`` functions will be added; raises CodegenError."""
        ...


def register_codegen(kind: str, codegen: Codegen) -> None:
    """Makes ``codegen`` generate code for target kind ``kind`` in this process.

    Raises CodegenError when the kind is already served by another generator.
    """
    _codegens.register(kind, codegen, repr(codegen))


def codegen_for(kind: str) -> Codegen:
    """Returns the code generator of target kind ``kind``; raises CodegenError that names the known kinds."""
    return _codegens.get(kind)


def check_target(target: Target) -> None:
    """Raises CodegenError when no code generator supports ``target``, as far as is known before one is called."""
    codegen = codegen_for(target.kind)
    if isinstance(codegen, TargetCheck):
        codegen.check(target)


def declined(prim: FuncOp, target: Target) -> str | None:
    """Returns why the code generator of ``target`` compiles no code of the PrimFunc ``prim``; None when it does."""
    codegen = codegen_for(target.kind)
    return codegen.supports(prim, target) if isinstance(codegen, KernelCheck) else None


def codegen_kinds() -> tuple[str, ...]:
    """Returns the target kinds that have a code generator, sorted."""
    return tuple(_codegens.names())


def _codegen(kind: str, loaded: object, origin: str) -> Codegen:
    if not callable(loaded):
        raise CodegenError(f"the code generator of target kind {kind!r}, {origin}, is {loaded!r}, not a function")
    return cast("Codegen", loaded)


_codegens = Plugins(
    "landbridge.codegens",
    "code generator",
    {
        "c": "landbridge.codegen.c:generate",
        "freestanding": "landbridge.codegen.freestanding:generate",
        "llvm": "landbridge.codegen.llvm:generate",
        "opencl": "landbridge.codegen.opencl:generate",
        "vulkan": "landbridge.codegen.vulkan:generate",
        "wasm": "landbridge.codegen.wasm:generate",
    },
    _codegen,
    CodegenError,
)
