"""Operands in images: one access for each pixel, whole pixels written, and memory in rows where that cannot be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType

from landbridge.analysis.lowered_accesses import ACCESSES, lowered_access
from landbridge.codegen.grid import grid_function
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.types import VDeviceAttr, tensor_type
from landbridge.passes.lower import lowering_for
from landbridge.passes.lower.access import Linear
from landbridge.passes.lower.image_memory import is_image, pixel_location
from landbridge.targets import Target

TARGETS = ["opencl -images", "opencl -images -device-class=cpu -vector-bits=512"]


def lowered(
    build: Callable[[PrimBuilder], None],
    inputs: Sequence[tuple[tuple[int, ...], Sequence[int]]],
    output: tuple[tuple[int, ...], Sequence[int]],
    target: str,
) -> func.FuncOp:
    """``build`` on f32 operands of (shape, axis separators), lowered; every access of it is proved."""

    def place(separators: Sequence[int]) -> VDeviceAttr:
        return VDeviceAttr.of(0, "global.texture", separators) if separators else VDeviceAttr.of()

    prim = PrimBuilder(
        "kernel",
        [tensor_type(shape, "float32", place(s)) for shape, s in inputs],
        [tensor_type(output[0], "float32", place(output[1]))],
    )
    build(prim)
    found = lowering_for(Target(target))(prim.finish())
    found.verify()
    return found


def accesses(function: func.FuncOp) -> Counter[str]:
    """How often each kind of access to an image stands in ``function``."""
    found = [lowered_access(op) for op in function.walk() if isinstance(op, ACCESSES)]
    return Counter(a.op.name for a in found if isinstance(a.buffer.type, MemRefType) and is_image(a.buffer.type))


def shifted(by: int) -> Callable[[PrimBuilder], None]:
    def build(p: PrimBuilder) -> None:
        shape = p.outputs[0].type.get_shape()  # type: ignore[attr-defined]
        read = (p.inputs[0], lambda i, j, k: (i, j, k + by))
        p.generic("ppp", shape, [read], [(p.outputs[0], lambda *d: d)], lambda s, x: s.maximum(x, 0))

    return build


@pytest.mark.parametrize("target", TARGETS)
def test_a_pixel_is_one_access(target: str) -> None:
    image = ((6, 5, 4), (1, 2))
    function = lowered(shifted(0), [image], image, target)
    assert accesses(function) == {"vector.load": 1, "vector.store": 1}
    assert grid_function(function, "kernel").sequence.images == (0, 1)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("separators", [(2, 3), (1, 3)])
def test_pixels_of_one_element(separators: tuple[int, int], target: str) -> None:
    image = ((6, 5, 4), separators)
    assert accesses(lowered(shifted(0), [image], image, target)) == {"memref.load": 1, "memref.store": 1}


@pytest.mark.parametrize("target", TARGETS)
def test_elements_out_of_line_with_pixels(target: str) -> None:
    """Each is one lane of its own fetch, and what is flat is written by elements."""
    function = lowered(shifted(1), [((6, 5, 8), (1, 3))], ((6, 5, 4), ()), target)
    assert accesses(function) == {"memref.load": 1}


@pytest.mark.parametrize("target", TARGETS)
def test_lanes_that_no_loop_walks_go_by_way_of_rows(target: str) -> None:
    """A loop of two and one of two make pixels of four: a second launch makes the image."""

    def build(p: PrimBuilder) -> None:
        p.generic(
            "pppp", [3, 5, 2, 2], [(p.inputs[0], lambda *d: d)], [(p.outputs[0], lambda *d: d)], lambda s, x: x + x
        )

    function = lowered(build, [((3, 5, 2, 2), ())], ((3, 5, 2, 2), (1, 2)), target)
    assert accesses(function) == {"vector.store": 1}
    sequence = grid_function(function, "kernel").sequence
    assert len(sequence.launches) == 2
    assert sequence.scratch == (3 * 5 * 4 * 4,)


@given(
    lanes=st.sampled_from([1, 2, 4]),
    coeffs=st.lists(st.integers(-9, 9), min_size=2, max_size=2),
    const=st.integers(-20, 20),
    at=st.tuples(*[st.integers(0, 5)] * 3),
    step=st.integers(-3, 3),
)
def test_pixel_and_lane_are_the_column(
    lanes: int, coeffs: list[int], const: int, at: tuple[int, ...], step: int
) -> None:
    column = Linear(const, {0: coeffs[0], 1: coeffs[1] * lanes, 2: step})
    value = const + coeffs[0] * at[0] + coeffs[1] * lanes * at[1] + step * at[2]
    place = pixel_location(column, lanes, 2, at[2])
    assert (place is None) == (coeffs[0] % lanes != 0)
    if place is not None:
        pixel = place.pixel.const + sum(c * at[d] for d, c in place.pixel.coeffs.items())
        assert (pixel, place.lane) == divmod(value, lanes)
