"""Options: fields that are none, values of another type, missing entries, and what onnxruntime raises for them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from onnx import parser

import landbridge.onnxruntime as ours
from landbridge.errors import LandbridgeError
from tests.onnxruntime.both import both

NETWORK = '<ir_version: 8, opset_import: ["": 18]> n (float[N, 4] x) => (float[N, 4] y) { y = Relu (x) }'


def test_fields_are_those_of_onnxruntime() -> None:
    import onnxruntime

    for name in ("SessionOptions", "RunOptions"):
        one, other = getattr(ours, name)(), getattr(onnxruntime, name)()
        fields = [each for each in dir(other) if not each.startswith("_") and not callable(getattr(other, each))]
        assert _values(one, fields) == _values(other, fields)


def _values(options: Any, fields: list[str]) -> dict[str, Any]:
    values = {each: getattr(options, each) for each in fields}
    return {each: getattr(value, "name", value) for each, value in values.items()}  # members of enums are of each


@pytest.mark.parametrize(
    ("of", "name", "value"),
    [
        ("SessionOptions", "intra_op_num_thread", 2),
        ("SessionOptions", "initializers", {}),
        ("RunOptions", "terminated", True),
        ("SessionOptions", "intra_op_num_threads", "2"),
        ("SessionOptions", "intra_op_num_threads", 2.0),
        ("SessionOptions", "enable_profiling", "yes"),
        ("SessionOptions", "graph_optimization_level", 99),
        ("SessionOptions", "optimized_model_filepath", 3),
        ("RunOptions", "logid", None),
        ("SessionOptions", "intra_op_num_threads", np.int64(2)),
        ("SessionOptions", "intra_op_num_threads", -1),
        ("SessionOptions", "enable_profiling", np.bool_(True)),
        ("SessionOptions", "enable_mem_reuse", 0),
    ],
)
def test_what_a_field_takes(of: str, name: str, value: Any) -> None:
    def program(onnxruntime: ModuleType) -> Any:
        options = getattr(onnxruntime, of)()
        try:
            setattr(options, name, value)
        except (AttributeError, TypeError) as error:
            return "AttributeError" if isinstance(error, AttributeError) else "TypeError"
        return getattr(options, name)

    both(program)


def test_a_misspelt_field_is_reported_the_right_one() -> None:
    with pytest.raises(AttributeError, match="did you mean 'intra_op_num_threads'") as reported:
        ours.SessionOptions().intra_op_num_thread = 2  # type: ignore[attr-defined]
    assert isinstance(reported.value, LandbridgeError)


def test_entries() -> None:
    def program(onnxruntime: ModuleType) -> Any:
        session, run = onnxruntime.SessionOptions(), onnxruntime.RunOptions()
        session.add_session_config_entry("a", "1")
        run.add_run_config_entry("b", "2")
        for ask in (session.get_session_config_entry, run.get_run_config_entry):
            with pytest.raises(RuntimeError, match="does not have configuration with key: c"):
                ask("c")
        with pytest.raises(TypeError):
            session.add_session_config_entry("a", 1)
        return session.get_session_config_entry("a"), run.get_run_config_entry("b")

    both(program)


@pytest.mark.parametrize("threads", [-1, 0, 1])
def test_numbers_of_threads(threads: int) -> None:
    def program(onnxruntime: ModuleType) -> Any:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        content = parser.parse_model(NETWORK).SerializeToString()
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        return session.run(None, {"x": np.ones((2, 4), np.float32)})

    both(program)
