"""Counts the images that kernels of a grid read and write at once, as the schedule will launch them."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.ir import SSAValue

from landbridge.ir.stages import view_prim
from landbridge.passes.lower.grid.pixels import read_buffers, written_images
from landbridge.passes.lower.image_memory import is_image
from landbridge.passes.lower.nest import build_nests
from landbridge.passes.lower.prefix import shared_prefix
from landbridge.targets import Target

#: The options with the limits, and the kind of access that each limits.
_LIMITS = (("max-sampled-images", "reads"), ("max-storage-images", "writes"))


def too_many_images(function: func.FuncOp, target: Target) -> str | None:
    """Returns why ``target`` has no kernel for the PrimFunc ``function``, by the images of one launch; None if it
    has."""
    if target.form != "grid" or not any(is_image(argument.type) for argument in function.body.block.args):
        return None
    view = view_prim(function)
    if view.has_own_order:
        return None  # no grid runs it
    nests = [nest for nest in build_nests(view) if not nest.is_empty]
    reads, writes, both = list[set[SSAValue]](), list[set[SSAValue]](), set[SSAValue]()
    for nest in nests:
        writes.append({access.buffer for access in written_images(nest, {})})
        reads.append({buffer for buffer in read_buffers(nest) if is_image(buffer.type)})
        both |= writes[-1] & reads[-1]  # a separate launch makes this image from rows, and only writes it
    if len(nests) > 1 and shared_prefix(nests) and not any(writes):  # which one launch may do
        reads = [set[SSAValue]().union(*reads)]
    counts = {
        "reads": max((len(images - both) for images in reads), default=0),
        "writes": max((len(images - both) for images in writes), default=0) or min(len(both), 1),
    }
    for option, verb in _LIMITS:
        most = target.options.get(option)
        if isinstance(most, int) and counts[verb] > most:
            return (
                f"its kernel {verb} {counts[verb]} images at once, and target {target.kind!r} states -{option}={most}; "
                "place fewer of its tensors in images"
            )
    return None
