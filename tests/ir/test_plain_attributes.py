"""Numbers, words, lists and dictionaries become attributes and come back."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, UnitAttr, i64

from landbridge.errors import CompileError
from landbridge.ir.plain_attributes import int_array, ints, plain_attribute, plain_data


def test_lists_of_integers() -> None:
    assert int_array([1, 2]) == ArrayAttr([IntegerAttr(1, i64), IntegerAttr(2, i64)])
    assert ints(int_array([1, 2])) == (1, 2)


def test_plain_data_come_back_as_they_are() -> None:
    data = {"a": [1, 2.5, "three", True], "b": {"c": []}}
    assert plain_data(plain_attribute(data)) == data
    assert plain_data(plain_attribute(True)) is True


def test_what_is_no_plain_data_is_refused() -> None:
    with pytest.raises(CompileError, match=r"numbers, text and lists of them are legal"):
        plain_attribute(object())
    with pytest.raises(CompileError, match=r"legal: numbers, text, lists of them"):
        plain_data(UnitAttr())
