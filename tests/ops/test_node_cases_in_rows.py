"""Operators whose operands and results lie in rows of a scratchpad, against the onnx wheel's stored node tests.

Inputs and results of every kernel are placed at random, so that flat code, tables of rows and pitched rows meet.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

import landbridge as lb
from landbridge.errors import PlacementError
from landbridge.ir.graph_ops import CallOp, HostCallOp
from landbridge.ir.module import IRModule
from landbridge.ir.types import shape_of
from landbridge.targets import Target
from landbridge.testing.sim_scratch import SimScratchDeviceAPI
from tests.ops import node_cases
from tests.ops.test_node_cases import NAMES

Array = np.ndarray[Any, Any]
DEVICE = "sim:scratch"


@pytest.fixture(scope="module")
def target() -> Target:
    return Target.from_device(lb.device(DEVICE), "llvm")


@pytest.mark.sample(34)
@pytest.mark.parametrize("name", NAMES)
def test_node(name: str, target: Target) -> None:
    random = Random(name)

    def rows(rank: int) -> str:
        return f"npu@{random.choice(['global.vtcm', 'global.pitched'])}[{random.randint(0, rank)}]"

    def run(module: IRModule, feeds: Mapping[str, Array]) -> Sequence[Array]:
        calls = [op for op in module.main.walk() if isinstance(op, CallOp | HostCallOp)]
        rank = min((len(shape_of(result.type)) for op in calls for result in op.res), default=0)
        places = {key: rows(array.ndim) for key, array in feeds.items() if array.ndim}
        try:
            executable = lb.compile(module, {"npu": target}, place={**places, "*": rows(rank)})
        except PlacementError as error:
            if not re.search("matches no node|is too small", str(error)):
                raise
            pytest.skip(str(error)[:160])
        session = lb.Session(executable, device=DEVICE, num_threads=1)
        return [np.asarray(output) for output in session(*(feeds[spec.name] for spec in session.inputs))]

    node_cases.check(name, target, run)
    api = lb.device(DEVICE).api
    assert isinstance(api, SimScratchDeviceAPI)
    api.check_guards()
