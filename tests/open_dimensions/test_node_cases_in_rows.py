"""Every operator with all extents of its inputs open and its tensors in rows, against the program in flat memory."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import numpy as np
import pytest

import landbridge as lb
from landbridge.errors import BindError, LandbridgeError, OutOfMemoryError, PlacementError, ShapeError
from landbridge.targets import Target
from landbridge.testing.sim_scratch import SimScratchDeviceAPI
from tests.open_dimensions.test_node_cases import compiled, declared, expect_equal, run
from tests.ops import node_cases
from tests.ops.test_node_cases import NAMES

Array = np.ndarray[Any, Any]
DEVICE = "sim:scratch"
#: Distances from the stored extents that are run; from one less to three more are legal.
STEPS = (0, -1, 3)


@pytest.fixture(scope="module")
def target() -> Target:
    return Target.from_device(lb.device(DEVICE), "llvm")


@pytest.mark.sample(16, rarer=3)
@pytest.mark.filterwarnings("ignore::landbridge.errors.FallbackWarning")
@pytest.mark.parametrize("name", NAMES)
def test_extents_that_are_open_in_flat_memory_are_open_in_rows(name: str, target: Target) -> None:
    random, case = Random(name), node_cases.cases()[name]
    inputs, wanted = case.data_sets[0]
    arrays = [node_cases._array(value) for value in inputs]
    given = {value.name: array for value, array in zip(case.model.graph.input, arrays, strict=True)}
    try:
        model, flat = compiled(case.model, given)
    except LandbridgeError:
        return
    if flat is None:
        return

    def rows(rank: int) -> str:
        return f"npu@{random.choice(['global.vtcm', 'global.pitched'])}[{random.randint(0, rank)}]"

    open_inputs = {spec.name: given[spec.name] for spec in flat.main.inputs if spec.name in given}
    shapes, dims = declared(open_inputs)
    rank = min(node_cases._array(value).ndim for value in wanted)
    places = {key: rows(array.ndim) for key, array in open_inputs.items() if array.ndim}
    try:
        executable = lb.compile(model, {"npu": target}, shapes=shapes, dims=dims, place={**places, "*": rows(rank)})
    except PlacementError as error:
        if not re.search(
            "matches no node|is too small|do not fit|axis_separators|indices that are computed", str(error)
        ):
            raise
        pytest.skip(str(error)[:160])
    session, on_cpu = lb.Session(executable, device=DEVICE, num_threads=1), lb.Session(flat, num_threads=1)
    for step in STEPS:
        others = given | {
            key: np.resize(array, tuple(e + step if e > 1 else e for e in array.shape))
            for key, array in open_inputs.items()
        }
        try:
            expected = run(on_cpu, others)
        except ShapeError:  # what an input says does not fit these shapes
            continue
        try:
            found = run(session, others)
        except (OutOfMemoryError, BindError) as error:
            pytest.skip(str(error)[:160])  # short rows take much of the scratchpad
        expect_equal(found, expected, 1e-5, 1e-6)
    api = lb.device(DEVICE).api
    assert isinstance(api, SimScratchDeviceAPI)
    api.check_guards()


def test_computed_indices_into_open_rows_are_refused(target: Target) -> None:
    case = node_cases.cases()["test_slice_neg"]
    arrays = [node_cases._array(value) for value in case.data_sets[0][0]]
    given = {value.name: array for value, array in zip(case.model.graph.input, arrays, strict=True)}
    model, flat = compiled(case.model, given)
    assert flat is not None
    shapes, dims = declared({spec.name: given[spec.name] for spec in flat.main.inputs})
    with pytest.raises(PlacementError, match=r"node 'y' uses a tensor .* in rows at indices that are computed"):
        lb.compile(model, {"npu": target}, shapes=shapes, dims=dims, place={"x": "npu@global.pitched[2]"})
