"""Which code generator serves which kind of target.

A code generator is a callable ``(module, target) -> ModuleImage``: ``module`` holds lowered functions (dialects
``builtin func arith math scf memref vector``), ``target`` is the Target they are compiled for. Generators of
Landbridge and of anyone else register alike, as entry points of the group ``landbridge.codegens`` whose name
is the target kind; one is imported when its kind is first asked for.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from xdsl.dialects.builtin import ModuleOp

from landbridge.errors import CodegenError
from landbridge.executable.parts import ModuleImage
from landbridge.locks import new_lock

if TYPE_CHECKING:
    from landbridge.target.target import Target

ENTRY_POINT_GROUP = "landbridge.codegens"


class Codegen(Protocol):
    """Turns lowered functions into the code of one target; raises CodegenError."""

    def __call__(self, module: ModuleOp, target: Target, /) -> ModuleImage: ...


@runtime_checkable
class TargetCheck(Protocol):
    """A generator that knows before it is called which targets it cannot serve; ``check`` raises CodegenError then."""

    def check(self, target: Target, /) -> None: ...


# The generators of this package, again: a source tree that is not installed has no entry points.
_BUILT_IN = (
    EntryPoint("c", "landbridge.codegen.c:generate", ENTRY_POINT_GROUP),
    EntryPoint("llvm", "landbridge.codegen.llvm:generate", ENTRY_POINT_GROUP),
    EntryPoint("opencl", "landbridge.codegen.opencl:generate", ENTRY_POINT_GROUP),
    EntryPoint("vulkan", "landbridge.codegen.vulkan:generate", ENTRY_POINT_GROUP),
)

_registered: dict[str, Codegen] = {}
_lock = new_lock()


def register_codegen(kind: str, codegen: Codegen) -> None:
    """Serve target kind ``kind`` with ``codegen`` in this process.

    Raises CodegenError when the kind is already served by another generator.
    """
    with _lock:
        known = _registered.setdefault(kind, codegen)
    if known is not codegen:
        raise CodegenError(
            f"target kind {kind!r} already has the code generator {known!r}; {codegen!r} cannot replace it"
        )


def codegen_for(kind: str) -> Codegen:
    """The code generator of target kind ``kind``; raises CodegenError that names the known kinds."""
    with _lock:
        known = _registered.get(kind)
    if known is not None:
        return known
    points = _entry_points()
    if kind not in points:
        legal = ", ".join(codegen_kinds()) or "none"
        raise CodegenError(
            f"no code generator for target kind {kind!r}; known kinds: {legal}. "
            f"A package adds one with an entry point {kind!r} in the group {ENTRY_POINT_GROUP!r}"
        )
    point = points[kind]
    try:
        codegen: Codegen = point.load()
    except Exception as error:
        raise CodegenError(
            f"the code generator {point.value!r} of kind {kind!r} cannot be imported: {error}"
        ) from error
    with _lock:
        return _registered.setdefault(kind, codegen)


def check_target(target: Target) -> None:
    """Raise CodegenError when no code generator serves ``target``, as far as is known before one is called."""
    codegen = codegen_for(target.kind)
    if isinstance(codegen, TargetCheck):
        codegen.check(target)


def codegen_kinds() -> tuple[str, ...]:
    """The target kinds that have a code generator, sorted."""
    with _lock:
        known = set(_registered)
    return tuple(sorted(known | set(_entry_points())))


def _entry_points() -> dict[str, EntryPoint]:
    points: dict[str, EntryPoint] = {}
    for point in (*_BUILT_IN, *entry_points(group=ENTRY_POINT_GROUP)):
        other = points.setdefault(point.name, point)
        if other.value != point.value:
            raise CodegenError(
                f"two packages claim target kind {point.name!r}: {other.value!r} and {point.value!r}; uninstall one"
            )
    return points
