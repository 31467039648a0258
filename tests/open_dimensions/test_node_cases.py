"""Every operator with all extents of its inputs open, against the onnx wheel's tests and programs of one size."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnx
import pytest

import landbridge as lb
from landbridge.errors import LandbridgeError, NodeError, ShapeError, UndecidedSizeError, UnsupportedOperatorError
from landbridge.targets import Target
from tests.ops import node_cases
from tests.ops.test_node_cases import NAMES

Array = np.ndarray[Any, Any]

#: What is refused, with an error that names the extent. Most open an extent that no model leaves open: of a kernel, of
#: weights of a recurrent network, of channels that are cut in groups, of the values of OneHot.
REFUSED = re.compile(
    "|".join(
        [
            "^test_resize_downsample_scales_(linear|nearest)(_align_corners)?$",  # of one element none is left
            "^test_gridsample",
            "^test_(basic_)?conv",
            "^test_(lstm|gru|simple_rnn)_",
            "^test_dft",
            "^test_onehot",
            "^test_(space|depth)to(depth|space)",
            "^test_group_normalization_e",
            "^test_(gathernd|scatternd)_",
            "^test_reshape_(?!allowzero)",  # to numbers, which hold for one size
            "^test_split_variable",
            "^test_expand_dim_unchanged",
            "^test_(slice_start_out_of_bounds|split_zero_size)",  # what inputs say leaves no elements
            "^test_rotary_embedding",  # of heads and of half as many angles, whose ranges here are others
            "^test_(roialign|maxunpool_export)",  # of the four corners of a region, the four extents of a stated shape
            "^test_(basic_)?deform_conv",
            "^test_col2im",  # of how many axes an image has
            "^test_slice_neg_steps",  # steps of an input are at least 1
        ]
    )
)
#: The extents are run at these distances from the stored ones; from one less to three more are legal.
STEPS = (-1, 2, 3)


def opened(model: onnx.ModelProto) -> onnx.ModelProto:
    """``model`` with a name for each extent of its inputs over 1, equal ones alike, and nothing said of outputs."""
    free = onnx.ModelProto()
    free.CopyFrom(model)
    for value in free.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_value > 1:
                dim.dim_param = f"d{dim.dim_value}"
    for value in free.graph.output:
        for dim in value.type.tensor_type.shape.dim:
            dim.Clear()
    del free.graph.value_info[:]
    return free


def declared(arrays: dict[str, Array]) -> tuple[dict[str, tuple[int | str, ...]], dict[str, str]]:
    shapes = {name: tuple(f"d{e}" if e > 1 else e for e in a.shape) for name, a in arrays.items()}
    dims = {f"d{e}": f"{e - 1}..{e + 3}" for a in arrays.values() for e in a.shape if e > 1}
    return shapes, dims


def compiled(
    model: onnx.ModelProto, given: dict[str, Array], target: str | Target = "llvm"
) -> tuple[onnx.ModelProto, lb.Executable | None]:
    """The program for any extents of all inputs, or of the first where the others must be known; None where that has
    none that are open. With the model that it was made from."""
    model = opened(model)
    shapes, dims = declared(given)
    if not dims:
        return model, None
    try:
        return model, lb.compile(model, target, shapes=shapes, dims=dims)
    except UnsupportedOperatorError as error:
        if "computed when the model runs" not in str(error):
            raise
    first = next(name for name in model.graph.node[0].input if name)
    for name, array in given.items():
        if name != first:
            model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    shapes, dims = declared({first: given[first]})
    return model, lb.compile(model, target, shapes=shapes, dims=dims) if dims else None


def run(session: lb.Session, given: dict[str, Array]) -> list[Array]:
    return [np.asarray(output) for output in session(*(given[spec.name] for spec in session.inputs))]


def expect_equal(found: list[Array], expected: list[Array], rtol: float, atol: float) -> None:
    for a, b in zip(found, expected, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if a.dtype.kind in "fV":
            a, b = a.astype(np.float64), b.astype(np.float64)
        np.testing.assert_allclose(a, b, rtol, atol)


@pytest.mark.sample(29, rarer=3)
@pytest.mark.parametrize("name", NAMES)
def test_every_extent_may_be_open(name: str) -> None:
    case = node_cases.cases()[name]
    inputs, wanted = case.data_sets[0]
    feeds = [node_cases._array(value) for value in inputs]
    given = {value.name: array for value, array in zip(case.model.graph.input, feeds, strict=True)}
    try:
        model, executable = compiled(case.model, given)
        if executable is None:
            return
        session = lb.Session(executable, num_threads=1)
        found = run(session, given)
    except (UnsupportedOperatorError, NodeError, ShapeError, UndecidedSizeError):
        if not REFUSED.search(name):
            raise
        return
    expected = [node_cases._array(value) for value in wanted]
    rough = any(a.dtype.name in ("float16", "bfloat16") for a in (*feeds, *expected))
    expect_equal(found, expected, 2e-2 if rough else 1e-3, 1e-5)  # as the suite's own tests here
    open_inputs = {spec.name for spec in session.inputs}
    for step in STEPS:
        shapes = {n: tuple(e + step if e > 1 else e for e in a.shape) for n, a in given.items() if n in open_inputs}
        others = given | {n: np.resize(given[n], shape) for n, shape in shapes.items()}
        try:
            known = lb.Session(lb.compile(model, "llvm", shapes=shapes), num_threads=1)
        except LandbridgeError:
            continue  # what this operator's attributes do not allow
        try:
            expected = run(known, others)
        except ShapeError:  # what an input says does not fit these shapes
            if session.executable.main.guards or not REFUSED.search(name):  # else it is done on the host
                with pytest.raises(ShapeError):
                    run(session, others)
            continue
        # A float is summed in another order where another schedule was chosen.
        expect_equal(run(session, others), expected, 1e-4, 1e-5)
