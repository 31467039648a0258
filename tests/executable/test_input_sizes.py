"""InputSizes gives what ``sizes_of_inputs`` gives, and its errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landbridge.errors import ShapeError
from landbridge.executable.bound_sizes import sizes_of_inputs
from landbridge.executable.input_sizes import InputSizes
from landbridge.executable.parts import TensorSpec
from landbridge.sizes.size import Extent, dimension

N, W, P = dimension("n", 1, 4), dimension("w", 8, 64, multiple_of=8), dimension("p", 0, 9)
EXTENTS: tuple[Extent, ...] = (N, W, P, 3, 2 * N + 1, W + 2, N + P, (W + 1) // 2, N * P)
VALUES = {"n": (1, 4), "w": (8, 64), "p": (0, 9)}


def _spec(name: str, shape: Sequence[Extent], elements: Sequence[Extent]) -> TensorSpec:
    sides: Any = tuple(shape), tuple(elements)
    return TensorSpec(name, sides[0], "float32", elements=sides[1])


@st.composite
def specs(draw: st.DrawFn) -> list[TensorSpec]:
    found = [_spec("all", (N, W), (P,))]  # each dimension is determined
    for number in range(draw(st.integers(1, 4))):
        shape, elements = (draw(st.lists(st.sampled_from(EXTENTS), max_size=3)) for _ in range(2))
        found.append(_spec(f"x{number}", shape, elements))
    return draw(st.permutations(found))


def at(extents: Sequence[Extent], values: dict[str, int]) -> list[int]:
    return [extent if isinstance(extent, int) else extent.at(values) for extent in extents]


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_it_gives_what_one_after_the_other_gives(data: st.DataObject) -> None:
    declared = data.draw(specs())
    sizes = InputSizes(declared)
    for _ in range(3):
        values = {
            "n": data.draw(st.integers(0, 5)),
            "w": data.draw(st.integers(0, 9)) * 8,
            "p": data.draw(st.integers(0, 10)),
        }
        shapes = {spec.name: at(spec.shape, values) for spec in declared}
        elements = {spec.name: at(spec.elements, values) for spec in declared if spec.elements}
        for of in data.draw(st.lists(st.sampled_from([shapes, elements]), max_size=2)):
            changed = of[data.draw(st.sampled_from(sorted(of)))]
            if changed:
                changed[data.draw(st.integers(0, len(changed) - 1))] += data.draw(st.integers(-1, 1))
            if of is shapes and data.draw(st.integers(0, 9)) == 0:
                changed.append(1)
        try:
            expected = sizes_of_inputs(declared, shapes, elements)
        except ShapeError as error:
            with pytest.raises(ShapeError) as found:
                sizes.of(shapes, elements)
            assert str(found.value) == str(error)
        else:
            assert list(sizes.of(shapes, elements).items()) == list(expected.items())
