"""Convolutions and pools of every geometry on every target, against onnxruntime; operands lie at inaccessible pages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from tests.passes.lower.window_cases import Array, window_case
from tests.witnesses.guard_pages import SIDES, GuardedRun, Side, guarded, in_child

import landbridge as lb
from landbridge.executable.executable import Executable
from landbridge.passes.lower.schedule import VectorUnit
from landbridge.targets import Target


def on_cpu(executable: Executable, inputs: list[Array], side: Side) -> Array:
    """The output of machine code."""
    return GuardedRun(executable, side)(*inputs)[0]


def on_opencl(executable: Executable, inputs: list[Array], side: Side) -> Array:
    """The output of OpenCL C; a driver of the CPU uses the memory in place."""
    from tests.codegen.opencl.machine import Machine

    constants = {name: guarded(a, side) for name, a in executable.constants.items()}
    machine = Machine(replace(executable, constants=constants))
    output = guarded(np.zeros(executable.main.outputs[0].shape, executable.main.outputs[0].dtype), side)
    machine.bind([guarded(a, side) for a in inputs], [output])
    machine.run()
    return output


def on_vulkan(executable: Executable, inputs: list[Array], side: Side) -> Array:
    """The output of a Vulkan device, whose memory is its own."""
    from tests.codegen.vulkan.launcher import vulkan

    session = lb.Session(executable, device=vulkan())
    for number, array in enumerate(inputs):
        session.set_input(number, array)
    session.run()
    return np.array(session.get_output(0).to_device("cpu"))


#: Options of each target, and what runs it.
TARGETS: dict[str, tuple[str, Callable[[Executable, list[Array], Side], Array]]] = {
    "llvm": ("llvm", on_cpu),
    "llvm-128": ("llvm -vector-bits=128 -vector-registers=16", on_cpu),
    "c": ("c -cflags=-O1", on_cpu),
    "opencl": ("opencl -fp64=1", on_opencl),
    "opencl-cpu": ("opencl -device-class=cpu -fp64=1 -vector-bits=512 -vector-registers=32", on_opencl),
    "vulkan": ("vulkan -fp64=1", on_vulkan),
}


def check_case(target: str, seed: int) -> None:
    """Case ``seed`` on a target, beside a page before or after each operand."""
    case, (options, run) = window_case(seed), TARGETS[target]
    executable = lb.compile(case.model, Target(options))
    found = run(executable, [case.feeds[spec.name] for spec in executable.main.inputs], SIDES[seed % 2])
    assert found.shape == case.wanted.shape
    np.testing.assert_allclose(found, case.wanted, rtol=1e-4, atol=1e-4, err_msg=str(case.model.graph.node[0]))


def _seeds(base: int, full: int) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("seed", range(base, base + full))


@pytest.mark.sample(14)
@_seeds(0, 600)
def test_llvm(seed: int) -> None:
    in_child(check_case, "llvm", seed)


@pytest.mark.sample(6)
@_seeds(1000, 200)
def test_llvm_with_other_vectors(seed: int) -> None:
    in_child(check_case, "llvm-128", seed)


def check_by_lane(seed: int) -> None:
    """Case ``seed`` as NEON has it, whose vectors are multiplied by lanes of others, in this machine's instructions."""
    neon = VectorUnit(16, 32, by_lane=True)
    with patch("landbridge.passes.lower.prims.vector_unit_of", lambda _: neon):
        check_case("llvm-128", seed)


@pytest.mark.sample(10)
@_seeds(6000, 400)
def test_llvm_with_products_by_lane(seed: int) -> None:
    in_child(check_by_lane, seed)


def test_a_masked_column_shares_no_load_with_a_whole_one() -> None:
    """Lanes along 7 pixels: the last column, of 3, begins where the first one is in its third iteration."""
    in_child(check_by_lane, 6009)


@pytest.mark.sample(3)
@_seeds(2000, 60)
def test_c(seed: int) -> None:
    in_child(check_case, "c", seed)


@pytest.mark.sample(2)
@_seeds(3000, 12)
def test_opencl(seed: int) -> None:
    in_child(check_case, "opencl", seed)


@pytest.mark.sample(2)
@_seeds(4000, 12)
def test_opencl_on_cores(seed: int) -> None:
    in_child(check_case, "opencl-cpu", seed)


@pytest.mark.sample(4)
@_seeds(5000, 40)
def test_vulkan(seed: int) -> None:
    in_child(check_case, "vulkan", seed)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("width", [4, 8])
def test_rows_of_padding_above_a_plain_column(target: str, width: int) -> None:
    """Kernel 3 x 1, padding along H alone, as many columns as half a vector or a whole one."""
    in_child(check_column, target, width)


def check_column(target: str, width: int) -> None:
    """All ones: each result is the number of its window's elements inside the map: 2 rows of 3 at the edges."""
    options, run = TARGETS[target]
    x = np.ones((1, 3, 8, width), np.float32)
    shapes = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, s)
        for name, s in (("x", x.shape), ("y", (1, 2, 8, width)))
    ]
    weights = numpy_helper.from_array(np.ones((2, 3, 3, 1), np.float32), "w")
    node = helper.make_node("Conv", ["x", "w"], ["y"], kernel_shape=[3, 1], pads=[1, 0, 1, 0])
    graph = helper.make_graph([node], "column", shapes[:1], shapes[1:], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    wanted = np.full((1, 2, 8, width), 9, np.float32)
    wanted[:, :, [0, -1]] = 6
    for side in SIDES:
        np.testing.assert_array_equal(run(lb.compile(model, Target(options)), [x], side), wanted)
