"""SPIR-V of images: whole pixels, found by column and row, whose elements a kernel sees as bits.

Images are of unsigned integers, whatever they hold, so that no driver converts their content. A kernel fetches from a
sampled image, or writes a storage image (Vulkan 1.3 specification, section 14.1 "Descriptor Types").
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import vector
from xdsl.dialects.builtin import MemRefType, VectorType
from xdsl.ir import Operation, SSAValue

from landbridge.codegen.printing import lane_position
from landbridge.codegen.vulkan.casts import resized
from landbridge.codegen.vulkan.emitter import ImageVariable, Printer, SpirvEmitter, bits_of, retained
from landbridge.errors import CodegenError
from landbridge.executable.spirv import IMAGE_FORMATS, Op
from landbridge.ir.types import dtype_of, shape_of
from landbridge.targets.images import DTYPES, LANES

_LOD = 2  # the image operand for the level, which is 0


def declare(e: SpirvEmitter, image: SSAValue, binding: int, *, written: bool) -> None:
    """Declares ``image`` as the image variable ``binding``: a storage image if it is ``written``, else a sampled one.

    Raises CodegenError for an element type or a number of lanes that no image can hold.
    """
    assert isinstance(image.type, MemRefType)
    lanes = shape_of(image.type)[2]
    if dtype_of(image.type) not in DTYPES or lanes not in LANES:
        raise CodegenError(f"{image.type}; images hold {', '.join(DTYPES)}, 1, 2 or 4 in a pixel")
    element = retained(e.element_of(image.type.element_type))
    kind, variable = e.module.image(binding, IMAGE_FORMATS[bits_of(element) // 8, lanes] if written else None)
    e.images[image] = ImageVariable(variable, kind, element, lanes)
    e.interface[variable] = None


def load_lane(e: SpirvEmitter, op: Operation) -> None:
    """Emits a read of one element of a pixel; the lane may be known only at run time."""
    ref, row, pixel, lane = op.operands
    image, texel = e.images[ref], _fetch(e, ref, row, pixel)
    if image.lanes == 1:
        found = e.emit(Op.CompositeExtract, "i32", texel, 0)
    else:
        found = e.emit(Op.VectorExtractDynamic, "i32", texel, _integer(e, lane))
    e.set(op.results[0], _element(e, found, image.element))


def store(e: SpirvEmitter, op: Operation) -> None:
    """Emits a write of a whole pixel: of a vector, or of the one element of an image with one lane.

    Raises CodegenError for a part of a pixel.
    """
    value, ref, row, pixel, _ = op.operands
    image = e.images[ref]
    lanes = e.lanes.get(value) or (e.ids[value],)
    if len(lanes) != image.lanes:
        raise CodegenError(f"{len(lanes)} elements are stored in {ref.type}; legal: whole pixels")
    words = [_word(e, lane, image.element) for lane in lanes] + [e.constant(0, "i32")] * (4 - len(lanes))
    e.statement(
        Op.ImageWrite, _loaded(e, image), _integers(e, (_integer(e, pixel), _integer(e, row))), _integers(e, words)
    )


def _load(e: SpirvEmitter, op: Operation) -> None:
    """Emits a read of a pixel and keeps its elements as separate lanes; raises CodegenError for a part of a pixel."""
    ref, row, pixel, _ = op.operands
    image, result = _image_of(e, ref), op.results[0]
    assert isinstance(result.type, VectorType)
    count = result.type.element_count()
    if count != image.lanes:
        raise CodegenError(f"{count} elements are read of {ref.type}; legal: whole pixels")
    texel = _fetch(e, ref, row, pixel)
    words = [e.emit(Op.CompositeExtract, "i32", texel, lane) for lane in range(count)]
    e.lanes[result] = tuple(_element(e, word, image.element) for word in words)


def _store(e: SpirvEmitter, op: Operation) -> None:
    _image_of(e, op.operands[1])
    store(e, op)


def _extract(e: SpirvEmitter, op: Operation) -> None:
    e.set(op.results[0], e.lanes[op.operands[0]][_lane(op)])


def _insert(e: SpirvEmitter, op: Operation) -> None:
    value, into = op.operands[:2]
    lanes = list(e.lanes[into])
    lanes[_lane(op)] = e.ids[value]
    e.lanes[op.results[0]] = tuple(lanes)


def _lane(op: Operation) -> int:
    lane = lane_position(op, len(op.operands) - 1)
    if isinstance(lane, SSAValue):
        raise CodegenError(f"{op.name} at a lane that only a run knows has no SPIR-V form")
    return lane


def _image_of(e: SpirvEmitter, ref: SSAValue) -> ImageVariable:
    if ref not in e.images:
        raise CodegenError(f"a vector of {ref.type} has no SPIR-V form; legal: elements, and pixels of images")
    return e.images[ref]


def _fetch(e: SpirvEmitter, ref: SSAValue, row: SSAValue, pixel: SSAValue) -> int:
    """Emits a read of one pixel of image ``ref``; returns the id of a vector of four 32-bit integers.

    The first lanes are the bits of the pixel's elements; the lanes beyond the image's channels mean nothing.
    """
    image, where = _loaded(e, e.images[ref]), _integers(e, (_integer(e, pixel), _integer(e, row)))
    texel = e.module.fresh()
    e.statement(Op.ImageFetch, e.module.integers(4), texel, image, where, _LOD, e.constant(0, "i32"))
    return texel


def _loaded(e: SpirvEmitter, image: ImageVariable) -> int:
    found = e.module.fresh()
    e.statement(Op.Load, image.kind, found, image.variable)
    return found


def _integers(e: SpirvEmitter, parts: Sequence[int]) -> int:
    """Emits a vector of the 32-bit integers ``parts``, given by id; returns its id."""
    found = e.module.fresh()
    e.statement(Op.CompositeConstruct, e.module.integers(len(parts)), found, *parts)
    return found


def _integer(e: SpirvEmitter, index: SSAValue) -> int:
    """Returns the id of ``index`` as a 32-bit integer, which is wide enough for any coordinate of an image."""
    return resized(e, e.ids[index], e.index, "i32", signed=False)


def _element(e: SpirvEmitter, word: int, element: str) -> int:
    """Emits the conversion of ``word``, a 32-bit integer, to the element type ``element``, from its low bits."""
    if element == "f32":
        return e.emit(Op.Bitcast, element, word)
    return resized(e, word, "i32", element, signed=False)


def _word(e: SpirvEmitter, value: int, element: str) -> int:
    """Emits the conversion of ``value``, of the element type ``element``, to a 32-bit integer with its bits."""
    if element == "f32":
        return e.emit(Op.Bitcast, "i32", value)
    return resized(e, value, element, "i32", signed=False)


PRINTERS: dict[type[Operation], Printer] = {
    vector.LoadOp: _load,
    vector.StoreOp: _store,
    vector.ExtractOp: _extract,
    vector.InsertOp: _insert,
}
