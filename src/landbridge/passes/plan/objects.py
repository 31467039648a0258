"""Storages that hold one buffer at a time: images, and spaces of memory where a launch takes no space twice."""

from __future__ import annotations

from collections.abc import Iterator

from landbridge import planner
from landbridge.analysis.scopes import Alloc, Scope, round_up
from landbridge.errors import PlanError
from landbridge.ir.types import dtype_of, item_bytes
from landbridge.passes.plan.solution import Solution, Storage
from landbridge.passes.rewrites import rewrite
from landbridge.shapes.physical import nd_bytes
from landbridge.sizes.size import Extent, Size, expected_size, least, product


def has_open_extents(scope: Scope) -> bool:
    """Returns whether a run decides extents of buffers of ``scope``."""
    return any(isinstance(extent, Size) for alloc in scope.allocs for extent in alloc.extents)


@rewrite("plan.objects", "buffers of memory of more dimensions share whole objects")
def in_objects(scope: Scope) -> Iterator[Storage] | None:
    """Returns one storage for each object of device memory that the scope needs, with the buffers that use it; None
    for memory of fewer than three dimensions, and where a run decides extents.

    Buffers whose lives do not overlap may share an object; each begins at byte 0 of it. Raises PlanError if the objects
    take more than the scope's free bytes.
    """
    return None if scope.kind.ndim < 3 or has_open_extents(scope) else _objects(scope)


def _objects(scope: Scope) -> Iterator[Storage]:
    requests = [
        planner.ObjectRequest(
            name,
            alloc.extents,
            dtype_of(alloc.op.memref.type),
            item_bytes(alloc.op.memref.type),
            alloc.life.first,
            alloc.life.last + 1,
        )
        for name, alloc in zip(scope.names, scope.allocs, strict=True)
    ]
    found = planner.plan_objects(requests)
    sizes = [nd_bytes(scope.kind, shape, dtype) for shape, dtype in found.objects]
    _check_sum(scope, sizes, "objects")
    for number, ((shape, dtype), nbytes) in enumerate(zip(found.objects, sizes, strict=True)):
        users = [a for name, a in zip(scope.names, scope.allocs, strict=True) if found.uses[name] == number]
        yield users, Solution(nbytes, (0,) * len(users), nbytes, True, shape, dtype)


@rewrite("plan.open_objects", "buffers of open sizes share objects of equal extents")
def in_open_objects(scope: Scope) -> list[Storage] | None:
    """Returns one storage for each space of rows or images that the scope needs, of which a run decides extents; None
    for flat memory, and where a run decides none.

    Buffers of the same extents and dtype whose lives do not overlap share one. Whether all fit is known when a size is
    bound.
    """
    if scope.kind.ndim == 1 or not has_open_extents(scope):
        return None
    spaces: list[list[Alloc]] = []
    for alloc in sorted(scope.allocs, key=lambda each: each.life.first):
        for space in spaces:
            last = space[-1]
            same = (last.extents, dtype_of(last.op.memref.type)) == (alloc.extents, dtype_of(alloc.op.memref.type))
            if same and last.life.last < alloc.life.first:
                space.append(alloc)
                break
        else:
            spaces.append([alloc])
    found: list[Storage] = []
    for users in spaces:
        extents, ty = users[0].extents, users[0].op.memref.type
        nbytes = product((*extents, item_bytes(ty)))
        found.append((users, Solution(nbytes, (0,) * len(users), least(nbytes), False, extents, dtype_of(ty))))
    return found


@rewrite("plan.spaces", "buffers get storages that hold one of them at a time")
def in_spaces(scope: Scope) -> Iterator[Storage] | None:
    """Returns one flat storage for each space that the scope needs, with the buffers that use it one after the other;
    None unless a launch takes no space twice.

    Buffers whose size a run decides share a space with buffers of the same size alone. Raises PlanError if the spaces
    take more than the scope's free bytes, or one more than the largest allocation.
    """
    if not scope.kind.one_tensor_per_space or scope.kind.ndim != 1:
        return None
    return _spaces(scope)


def _spaces(scope: Scope) -> Iterator[Storage]:
    kind = scope.kind
    requests: dict[Extent | None, list[planner.ObjectRequest]] = {}
    for name, alloc in zip(scope.names, scope.allocs, strict=True):
        nbytes = round_up(alloc.nbytes, max(kind.coherence_granule, kind.copy_granule, kind.size_multiple))
        key = nbytes if isinstance(nbytes, Size) else None
        expected = max(expected_size(nbytes), 1)
        request = planner.ObjectRequest(name, (expected,), "uint8", 1, alloc.life.first, alloc.life.last + 1)
        requests.setdefault(key, []).append(request)
    allocs = dict(zip(scope.names, scope.allocs, strict=True))
    plans = [(size, planner.plan_objects(group)) for size, group in requests.items()]
    _check_sum(scope, [shape[0] for _, found in plans for shape, _ in found.objects], "spaces")
    for size, found in plans:
        for number, ((expected,), _) in enumerate(found.objects):
            users = [allocs[str(name)] for name, used in found.uses.items() if used == number]
            if kind.max_bytes is not None and expected > kind.max_bytes:
                raise PlanError(
                    f"tensor {users[0].name!r} takes {expected} bytes, and an allocation there at most "
                    f"{kind.max_bytes}; place it in another scope, or compile for smaller shapes"
                )
            yield users, Solution(expected if size is None else size, (0,) * len(users), expected, True)


def _check_sum(scope: Scope, sizes: list[int], what: str) -> None:
    if scope.free is not None and sum(sizes) > scope.free:
        raise PlanError(
            f"{len(sizes)} {what} of {sum(sizes)} bytes in all are placed there, and {scope.free} bytes are free; "
            "place fewer tensors there, or compile for smaller shapes"
        )
