"""Every operator with all extents of its inputs open, on devices of workgroups, against the program for a CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import landbridge as lb
from landbridge.errors import LandbridgeError, ShapeError
from landbridge.targets import Target
from tests.codegen.vulkan.launcher import vulkan
from tests.open_dimensions.test_node_cases import compiled, expect_equal, run
from tests.ops import node_cases
from tests.ops.test_node_cases import NAMES
from tests.selection.installed import package

Array = np.ndarray[Any, Any]

#: A GPU's schedules of OpenCL, and those for a CPU's driver; Vulkan's are a GPU's.
TARGETS = {
    "opencl": "opencl -fp64=1",
    "opencl-cpu": "opencl -device-class=cpu -fp64=1 -vector-bits=512 -vector-registers=32",
    "vulkan": None,
}
#: Distances from the stored extents that are run; from one less to three more are legal.
STEPS = (0, -1, 3)


def device_and_target(name: str) -> tuple[lb.Device, Target]:
    """The device that runs target ``name``, and the Target."""
    if name == "vulkan":
        return vulkan(), Target.from_device(vulkan())
    package("pyopencl", "test")
    return lb.device("opencl:0"), Target(TARGETS[name])


def run_on_device(session: lb.Session, given: dict[str, Array]) -> list[Array]:
    for spec in session.inputs:
        session.set_input(spec.name, given[spec.name])
    session.run()
    return [np.array(session.get_output(i).to_device("cpu")) for i in range(len(session.outputs))]


@pytest.mark.sample(24, rarer=6)  # PoCL takes a quarter of a second to begin a program
@pytest.mark.filterwarnings("ignore::landbridge.errors.FallbackWarning")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", NAMES)
def test_extents_that_are_open_on_a_cpu_are_open_on_devices(name: str, target: str) -> None:
    case = node_cases.cases()[name]
    device, made_for = device_and_target(target)
    inputs, _ = case.data_sets[0]
    arrays = [node_cases._array(value) for value in inputs]
    given = {value.name: array for value, array in zip(case.model.graph.input, arrays, strict=True)}
    try:
        _, known = compiled(case.model, given)
    except LandbridgeError:
        with pytest.raises(LandbridgeError):
            compiled(case.model, given, made_for)
        return
    if known is None:
        return
    on_cpu = lb.Session(known, num_threads=1)
    _, executable = compiled(case.model, given, made_for)
    assert executable is not None and executable.is_open == known.is_open
    session = lb.Session(executable, device=device)
    rough = any(array.dtype.name in ("float16", "bfloat16") for array in arrays)
    open_inputs = {spec.name for spec in session.inputs}
    for step in STEPS:
        shapes = {n: tuple(e + step if e > 1 else e for e in a.shape) for n, a in given.items() if n in open_inputs}
        others = given | {n: np.resize(given[n], shape) for n, shape in shapes.items()}
        try:
            expected = run(on_cpu, others)
        except ShapeError:  # what an input says does not fit these shapes
            with pytest.raises(ShapeError):
                run_on_device(session, others)
            continue
        # Sums go in another order, and functions are other approximations.
        expect_equal(run_on_device(session, others), expected, 2e-2 if rough else 1e-3, 1e-5)
