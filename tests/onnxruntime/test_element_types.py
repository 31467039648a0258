"""Element types by number are those of the package onnx."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from landbridge.onnxruntime.element_types import element_name, element_of, numpy_element, spelled

ELEMENTS = {number: name for name, number in onnx.TensorProto.DataType.items()}
TYPED = [number for number in ELEMENTS if number]


@pytest.mark.parametrize("number", ELEMENTS)
def test_names(number: int) -> None:
    name = ELEMENTS[number].lower()
    assert element_name(number) == {"float": "float", "double": "double"}.get(name, name)


@pytest.mark.parametrize("number", TYPED)
def test_dtypes(number: int) -> None:
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(number))
    assert numpy_element(number) == dtype
    assert element_of(dtype) == onnx.helper.np_dtype_to_tensor_dtype(dtype) == number
    assert spelled(dtype) == f"tensor({element_name(number)})"


def test_text_of_any_length_is_a_string() -> None:
    assert element_of(np.dtype("<U7")) == element_of(object) == onnx.TensorProto.STRING
    assert element_of(onnx.TensorProto.INT4) == onnx.TensorProto.INT4


def test_what_has_no_number_is_refused() -> None:
    for dtype in (">f4", "datetime64[s]", "S3"):
        with pytest.raises(ValueError, match="not an element type of ONNX"):
            element_of(np.dtype(dtype))
        assert spelled(np.dtype(dtype)) == str(np.dtype(dtype))
    with pytest.raises(ValueError, match="legal: 0 to"):
        element_name(99)
    with pytest.raises(KeyError):
        numpy_element(0)
