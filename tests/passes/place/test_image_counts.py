"""Kernels that would use more images at once than their target has are refused before code is made of them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, helper

import landbridge as lb
from landbridge.errors import PlacementError
from landbridge.targets import Target

SHAPE = (4, 6, 4)
TEXTURE = "vulkan@global.texture[1,2]"


def target(sampled: int, storage: int) -> Target:
    return Target(f"vulkan -images=1 -max-sampled-images={sampled} -max-storage-images={storage}")


def network(inputs: int) -> ModelProto:
    """A sum of ``inputs`` images, in one kernel when it is fused, and a node after it."""
    names = [f"x{number}" for number in range(inputs)]
    nodes = [helper.make_node("Sum", names, ["s"], name="sum"), helper.make_node("Neg", ["s"], ["y"], name="neg")]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPE) for name in (*names, "y")]
    graph = helper.make_graph(nodes, "sum", ends[:-1], ends[-1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@settings(max_examples=15)
@given(inputs=st.integers(2, 9), sampled=st.integers(0, 9), storage=st.integers(0, 2), placed=st.booleans())
def test_it_is_compiled_or_refused_by_its_node(inputs: int, sampled: int, storage: int, placed: bool) -> None:
    place = {f"x{number}": TEXTURE for number in range(inputs)} | ({"sum": TEXTURE} if placed else {})
    try:
        lb.compile(network(inputs), target=target(sampled, storage), place=place)
    except PlacementError as error:
        too_many = [(inputs, "reads", sampled)] * (inputs > sampled) + [(1, "writes", storage)] * (storage < 1)
        output = str(error)
        assert any(
            f"{verb} {count} images at once" in output and f"={most}" in output for count, verb, most in too_many
        )
    else:
        assert inputs <= sampled
        assert storage or not placed


@pytest.mark.parametrize("inputs", [3, 4])
def test_the_node_and_the_way_out_are_named(inputs: int) -> None:
    place = {f"x{number}": TEXTURE for number in range(inputs)}
    if inputs == 3:
        lb.compile(network(inputs), target=target(3, 1), place=place)
        return
    output = r"node '.*sum.*' was placed .* reads 4 images at once, .* states -max-sampled-images=3; place"
    with pytest.raises(PlacementError, match=output):
        lb.compile(network(inputs), target=target(3, 1), place=place)
