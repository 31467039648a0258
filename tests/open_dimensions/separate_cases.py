"""The node tests of the onnx wheel with a name of its own for every axis of every input."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, TypeAlias

import numpy as np
import onnx

import landbridge as lb
from landbridge.errors import AccessError, LandbridgeError
from landbridge.records import record
from tests.ops import node_cases

Array: TypeAlias = np.ndarray[Any, Any]

#: Reasons for which docs/open-dimensions.md says that such a model is refused, and what errors then say.
DOCUMENTED: Mapping[str, str] = {
    "how many elements an input of sizes, axes or pads has": (
        r"how many elements it has is open|Node 'Y': size has|: size has \S+ elements"
    ),
    "the kernel of a convolution": r"a kernel of .* elements; give its axes numbers|an output_shape of ",
    "channels that are cut into groups or blocks": r"images of .* channels; give them a number",
    "the points of a DFT": r"a transform of .* points, which is known when the input comes",
    "the lengths of index vectors": r"depth <= len\(data\)",
    "fewer heads of keys than of queries": (
        r"by axis 1 of input '(Q|query)' and \d+ by axis 1 of input '(K|key)'; they must be equal"
    ),
    "two products of several dimensions each": r"broadcast where (\S*\*\S* is|\S+ is \S*\*)",
    "the length of blocks that are scaled": r"for each block_size along axis|blocked scales must be constants",
}


@record(frozen=True)
class Outcome:
    """What a case ends in: ``why`` has the message, ``stage`` where it came."""

    kind: Literal["right", "refused", "wrong", "failed"]
    stage: str = ""
    why: str = ""

    @property
    def reason(self) -> str:
        """The documented reason of a refusal; empty where there is none."""
        return next((reason for reason, says in DOCUMENTED.items() if re.search(says, self.why)), "")


@cache
def names() -> list[str]:
    """The cases whose inputs and outputs are tensors, some of the inputs with axes."""
    return sorted(
        name
        for name, case in node_cases.cases().items()
        if case.model is not None
        and all(v.type.HasField("tensor_type") for v in (*case.model.graph.input, *case.model.graph.output))
        and any(v.type.tensor_type.shape.dim for v in case.model.graph.input)
    )


def separate(model: onnx.ModelProto) -> onnx.ModelProto:
    """``model`` with a name of its own for each axis of each input, and nothing said of other shapes."""
    free = onnx.ModelProto()
    free.CopyFrom(model)
    for value in free.graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            dim.Clear()
            dim.dim_param = f"{value.name}_{axis}"
    for value in free.graph.output:
        for dim in value.type.tensor_type.shape.dim:
            dim.Clear()
    del free.graph.value_info[:]
    return free


def outcome(name: str, *, is_separate: bool = True) -> Outcome:
    """What the case ``name`` ends in with all dimensions apart, or as its file has them."""
    case = node_cases.cases()[name]
    inputs, wanted = case.data_sets[0]
    stage = "compile"
    try:
        given = {
            value.name: node_cases._array(array) for value, array in zip(case.model.graph.input, inputs, strict=True)
        }
        expected = [node_cases._array(value) for value in wanted]
        executable = lb.compile(separate(case.model) if is_separate else case.model, "llvm")
        stage = "run"
        session = lb.Session(executable, num_threads=1)
        found = [np.asarray(output) for output in session(*(given[spec.name] for spec in session.inputs))]
    except Exception as error:
        refused = isinstance(error, LandbridgeError) and not isinstance(error, AccessError)
        return Outcome("refused" if refused else "failed", stage, f"{type(error).__name__}: {error}")
    try:
        _expect_equal(found, expected, [*given.values(), *expected])
    except AssertionError as error:
        return Outcome("wrong", stage, str(error).strip())
    return Outcome("right")


def _expect_equal(found: list[Array], expected: list[Array], all_arrays: list[Array]) -> None:
    rough = any(a.dtype.name in ("float16", "bfloat16") for a in all_arrays)
    for a, b in zip(found, expected, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), f"{a.dtype}{a.shape}, where {b.dtype}{b.shape} is wanted"
        if a.dtype.kind in "fV":
            a, b = a.astype(np.float64), b.astype(np.float64)
        np.testing.assert_allclose(a, b, 2e-2 if rough else 1e-3, 1e-5)  # as the suite's own tests here
