"""The node tests of the onnx wheel: one-operator models with stored inputs and outputs."""

from __future__ import annotations

import pickle
import re
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias
from unittest.mock import patch

import numpy as np
import onnx
from onnx.backend.base import Backend
from onnx.backend.test import BackendTest
from onnx.backend.test.case.node import collect_testcases
from wheel_models import cache_folder

import landbridge as lb
from landbridge.errors import ShapeError, UnsupportedOperatorError
from landbridge.frontend.onnx.import_request import ImportRequest
from landbridge.frontend.onnx.importer import import_onnx
from landbridge.ir.module import IRModule
from landbridge.ir.verifier import verify
from landbridge.targets import Target
from tests.ir.interpreter import names_of, run_module

#: Relative; of dtypes that round more than the default of the suite allows.
_TOLERANCE = {"bfloat16": 2e-2, "float16": 5e-3}


@cache
def cases() -> dict[str, Any]:
    """Every node test case by name.

    The suite computes its expectations in Python, eight seconds of each process that asks: they are kept.
    """
    retained = cache_folder() / f"onnx-{onnx.__version__}-numpy-{np.__version__}-cases.pickle"
    if retained.exists():
        found: dict[str, Any] = pickle.loads(retained.read_bytes())
        return found
    with warnings.catch_warnings():  # infinities are among the expectations
        warnings.simplefilter("ignore")
        found = {case.name: case for case in collect_testcases()}
    retained.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=retained.parent) as scratch:
        part = Path(scratch) / "part"
        part.write_bytes(pickle.dumps(found))
        part.replace(retained)  # a complete file only, should two runs race
    return found


def suite(backend: type[Backend], module: str) -> BackendTest:
    """ONNX's own test suite of ``backend``, its node tests being ``cases``, which it would compute anew."""
    with patch("onnx.backend.test.loader.load_node_model_tests", lambda: list(cases().values())):
        return BackendTest(backend, module)


def names(op_types: Sequence[str], exclude: str = "$^") -> list[str]:
    """Names of the cases whose model has a node of these types, without those that match ``exclude``."""
    return sorted(
        name
        for name, case in cases().items()
        if case.model is not None
        and any(n.op_type in op_types for n in case.model.graph.node)
        and not re.search(exclude, name)
    )


#: What gives the outputs of a module for its inputs by name.
Runner: TypeAlias = Callable[[IRModule, Mapping[str, np.ndarray[Any, Any]]], Sequence[np.ndarray[Any, Any]]]


def check(name: str, target: Target, run: Runner = run_module) -> None:
    """Import, run (the interpreter of the IR, unless another is given) and compare with the stored outputs."""
    case = cases()[name]
    for inputs, wanted in case.data_sets:
        feeds = [_array(v) for v in inputs]
        module, left = imported(case.model, feeds, target)
        verify(module)
        results = run(module, left)
        assert names_of(module.main, "lb.output_names") == [o.name for o in case.model.graph.output]
        for result, expected in zip(results, wanted, strict=True):
            expected = _array(expected)
            assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
            rtol = max(case.rtol or 0, _TOLERANCE.get(expected.dtype.name, 1e-3))
            if result.dtype.kind in "fV":
                result, expected = result.astype(np.float64), expected.astype(np.float64)
            np.testing.assert_allclose(result, expected, rtol, max(case.atol or 0, 1e-5))


def run_compiled(module: IRModule, feeds: Mapping[str, np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    """The outputs of ``module`` compiled for its target."""
    session = lb.Session(lb.compile(module, module.targets[0]), num_threads=1)
    return [np.asarray(output) for output in session(*(feeds[spec.name] for spec in session.inputs))]


def _array(value: Any) -> np.ndarray[Any, Any]:
    """A stored input or output."""
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)


def imported(
    model: onnx.ModelProto, feeds: Sequence[np.ndarray[Any, Any]], target: Target
) -> tuple[IRModule, dict[str, np.ndarray[Any, Any]]]:
    """The module and the inputs it still takes.

    In these tests everything is an input. Shapes, axes and the like must be constants of a model to be compiled, so
    when the importer asks for one, inputs after the first become initializers.
    """
    given = {v.name: a for v, a in zip(model.graph.input, feeds, strict=True)}
    shapes = {n: a.shape for n, a in given.items()}
    try:
        return import_onnx(ImportRequest(model, (target,), shapes=shapes)).module, given
    except UnsupportedOperatorError as error:
        if "computed when the model runs" not in str(error):
            raise
    except ShapeError as error:
        if "branches" not in str(error):
            raise
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    first = next(n for n in fixed.graph.node[0].input if n)
    for name, array in given.items():
        if name != first:
            fixed.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    module = import_onnx(
        ImportRequest(fixed, (target,), shapes={first: shapes[first]} if first in shapes else None)
    ).module
    return module, {n: a for n, a in given.items() if n in names_of(module.main, "lb.input_names")}
