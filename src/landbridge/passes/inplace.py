"""In-place execution: the last use of a buffer is overwritten by its result, so elementwise kernels need no new memory.

A kernel may write onto an input if only its last stage reads that input, each element where it writes it, or if only
its first stage reads it, to copy it before other stages update parts of the copy. Such a PrimFunc carries
``lb.in_place``: lowering may not assume that its arguments never overlap, nor compute an element twice.
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects import func, memref
from xdsl.ir import OpResult, SSAValue
from xdsl.rewriter import Rewriter

from landbridge.analysis.lifetimes import Lifetime, lifetimes, root, steps
from landbridge.analysis.offsets import has_one_tensor_per_space
from landbridge.analysis.overwriting import copied_first, copies_whole, read_where_written
from landbridge.ir.graph_ops import CallOp, ViewOp
from landbridge.ir.kernel_attributes import is_in_place, mark_in_place, mark_unless_same
from landbridge.ir.module import IRModule
from landbridge.ir.op_attributes import placed_on
from landbridge.ir.types import VDeviceAttr, dtype_of, nbytes_of
from landbridge.passes.registry import register_pass
from landbridge.passes.rewrites import rewrite
from landbridge.targets.images import image_limits


@register_pass("inplace")
def inplace(module: IRModule) -> None:
    """Let kernels that may write onto an input do so if they are its last use."""
    block = module.main.body.block
    lives = lifetimes(block)
    prims = module.prims()
    pairs: dict[str, list[tuple[int, int]]] = {}
    for step, (op, _) in enumerate(steps(block)):
        if not isinstance(op, CallOp):
            continue
        callee = op.callee_name
        if callee not in pairs:
            args = prims[callee], len(op.destinations)
            pairs[callee] = _updated_copy(*args) or _elementwise(*args) or []
        for i, o in pairs[callee]:
            vdevice = _vdevice(root(op.destinations[o]))
            if image_limits(module.target_of(vdevice.index.data), vdevice.scope.data):
                continue  # no kernel reads the image that it writes
            if has_one_tensor_per_space(module, vdevice):
                continue
            if _share(op, op.inputs[i], op.destinations[o], step, lives):
                if not is_in_place(prims[callee]):
                    op.callee_name = in_place_twin(module, callee)
                break
    module.drop_unused()


@rewrite("inplace.updated_copy", "a kernel that updates parts of a copy updates its operand")
def _updated_copy(function: func.FuncOp, outputs: int) -> list[tuple[int, int]]:
    """Returns the (input, output) pair of a kernel that copies an input and then updates parts of the copy."""
    found = copied_first(function, outputs)
    return [] if found is None else [found]


@rewrite("inplace.elementwise", "a kernel writes its result onto an operand that it reads element by element")
def _elementwise(function: func.FuncOp, outputs: int) -> list[tuple[int, int]]:
    """Returns the (input, output) pairs of a kernel whose last stage reads each element where it writes it."""
    return read_where_written(function, outputs)


def in_place_twin(module: IRModule, name: str) -> str:
    """Returns the name of the variant of PrimFunc ``name`` that may write onto its inputs; adds it if it is missing."""
    twin = f"{name}_in_place"
    prims = module.prims()
    if twin not in prims:
        clone = module.clone_prim(prims[name], twin)
        mark_in_place(clone)
        _skip_copy(clone)
    return twin


@rewrite("inplace.skipped_copy", "a copy in place does nothing")
def _skip_copy(clone: func.FuncOp) -> None:
    """Mark a kernel that only copies: it does nothing where its output is its input."""
    if copies_whole(clone):
        mark_unless_same(clone)


def _share(op: CallOp, source: SSAValue, target: SSAValue, step: int, lives: dict[SSAValue, Lifetime]) -> bool:
    """Make ``source`` and ``target`` one buffer if that is safe at ``step``; returns whether it was."""
    old, new = root(source), root(target)
    if old is new or not isinstance(old.owner, memref.AllocOp):
        return False
    kinds = {(dtype_of(v.type), nbytes_of(v.type)) for v in (source, target, old, new)}  # a view changes neither
    readers = sum(root(v) is old for v in op.inputs)
    if len(kinds) != 1 or readers != 1 or lives[old].last != step or lives[new].first != step:
        return False
    if _vdevice(old) != _vdevice(new):
        return False
    if isinstance(new.owner, memref.AllocOp):
        _become_view(new.owner, old)
        lives[old] = replace(lives[old], last=lives[new].last)
    else:
        _become_view(old.owner, new)
    return True


def _vdevice(value: SSAValue) -> VDeviceAttr:
    """Returns the placement of a buffer; inputs and outputs are in ordinary memory of vdevice 0."""
    return placed_on(value.op) if isinstance(value, OpResult) else VDeviceAttr.of()


def _become_view(gone: memref.AllocOp, retained: SSAValue) -> None:
    """Replace an allocation by a view of ``retained``, in the same block."""
    block = gone.parent
    assert block is not None
    if isinstance(retained, OpResult):  # it may come after the allocation that it replaces
        block.detach_op(retained.op)
        first = block.first_op
        assert first is not None
        block.insert_op_before(retained.op, first)
    view = ViewOp(retained, gone.memref.type)
    block.insert_op_before(view, gone)
    gone.memref.replace_all_uses_with(view.result)
    Rewriter.erase_op(gone)
