"""ONNX's own node tests on first programs: what the first tier takes is right."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
import pytest

import landbridge as lb
from landbridge.first_tier.operators import TRANSLATIONS
from landbridge.first_tier.program import first_program
from tests.ops import node_cases

_FIRST_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _models(case: object) -> Iterator[tuple[bytes, dict[str, np.ndarray]]]:
    """The model of a case with its inputs, then with those after the first as constants; none without tensors."""
    (inputs, _), *_ = case.data_sets
    if any(not isinstance(x, np.ndarray | np.generic) for x in inputs):
        return
    given = {value.name: np.asarray(x) for value, x in zip(case.model.graph.input, inputs, strict=True)}
    yield case.model.SerializeToString(), given
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    first = next((name for node in model.graph.node[:1] for name in node.input if name), None)
    for name, x in given.items():
        if name != first:
            model.graph.initializer.append(onnx.numpy_helper.from_array(x, name))
    yield model.SerializeToString(), {name: x for name, x in given.items() if name == first}


def _taken(letter: str) -> Iterator[tuple[str, object, lb.Executable, dict[str, np.ndarray]]]:
    for name, case in node_cases.cases().items():
        for model, inputs in _models(case) if name.startswith(f"test_{letter}") else ():
            executable = first_program(model, lb.Target("llvm"), {n: x.shape for n, x in inputs.items()})
            if executable is not None:
                yield name, case, executable, inputs


@pytest.mark.parametrize("letter", _FIRST_LETTERS)
def test_results_are_the_stored_ones(letter):
    for name, case, executable, inputs in _taken(letter):
        session = lb.Session(executable, num_threads=1)
        found = session(*(inputs[spec.name] for spec in executable.main.inputs))
        for result, wanted in zip(map(np.asarray, found), map(np.asarray, case.data_sets[0][1]), strict=True):
            assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape), name
            np.testing.assert_allclose(result, wanted, rtol=case.rtol, atol=case.atol, err_msg=name)


def test_the_translations_have_a_case():
    covered = {
        node.op_type for letter in _FIRST_LETTERS for _, case, *_ in _taken(letter) for node in case.model.graph.node
    }
    # Opset 10 left out Upsample; cases of LayerNormalization read its statistics (tests/first_tier/test_program.py),
    # and operators of onnxruntime have none.
    apart = {"LayerNormalization", "Upsample", "com.microsoft.DynamicQuantizeLSTM"}
    assert set(TRANSLATIONS) - covered <= apart
