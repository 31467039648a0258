"""Which code generator serves which kind of target.

A code generator is a callable ``(module, target) -> ModuleImage``: ``module`` holds lowered functions (dialects
``builtin func arith math scf memref vector``), in the form that the kind of target wants, ``target`` is the Target they
are compiled for. Generators of Landbridge and of anyone else register alike, as entry points of the group
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
    """A generator that knows before it is called which targets it cannot serve; ``check`` raises CodegenError then."""

    def check(self, target: Target, /) -> None: ...


@runtime_checkable
class KernelCheck(Protocol):
    """A generator that does not make code of every kernel. A kernel that it declines goes to a CPU, with a warning."""

    def supports(self, prim: FuncOp, target: Target, /) -> str | None:
        """Why there is no code of ``prim`` for ``target``, as the end of "on the CPU, as ..."; None when there is.

        ``prim`` is a PrimFunc: ``linalg`` on memrefs, before it is lowered. It must not be changed.
        """


class BegunCode(Protocol):
    """The code of one target, which is made while functions are still being lowered."""

    def add(self, function: FuncOp, /) -> None:
        """Begin with ``function``, which stays as it is; a CodegenError of it is raised by ``finish`` again."""

    def finish(self, module: ModuleOp, /) -> ModuleImage:
        """The code of ``module``, whose functions were added or not, as the generator makes it; raises CodegenError."""
        ...

    def close(self) -> None:
        """Nothing of it goes on. Called once, whatever happened."""


@runtime_checkable
class EarlyCodegen(Protocol):
    """A generator that begins with functions before all of them are lowered."""

    def begin(self, target: Target, count: int, /) -> BegunCode:
        """Code of ``target``, of which about ``count`` functions will be added; raises CodegenError."""
        ...


def register_codegen(kind: str, codegen: Codegen) -> None:
    """Serve target kind ``kind`` with ``codegen`` in this process.

    Raises CodegenError when the kind is already served by another generator.
    """
    _codegens.register(kind, codegen, repr(codegen))


def codegen_for(kind: str) -> Codegen:
    """The code generator of target kind ``kind``; raises CodegenError that names the known kinds."""
    return _codegens.get(kind)


def check_target(target: Target) -> None:
    """Raise CodegenError when no code generator serves ``target``, as far as is known before one is called."""
    codegen = codegen_for(target.kind)
    if isinstance(codegen, TargetCheck):
        codegen.check(target)


def declined(prim: FuncOp, target: Target) -> str | None:
    """Why the code generator of ``target`` makes no code of the PrimFunc ``prim``; None when it does."""
    codegen = codegen_for(target.kind)
    return codegen.supports(prim, target) if isinstance(codegen, KernelCheck) else None


def codegen_kinds() -> tuple[str, ...]:
    """The target kinds that have a code generator, sorted."""
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
        "llvm": "landbridge.codegen.llvm:generate",
        "opencl": "landbridge.codegen.opencl:generate",
        "vulkan": "landbridge.codegen.vulkan:generate",
    },
    _codegen,
    CodegenError,
)
