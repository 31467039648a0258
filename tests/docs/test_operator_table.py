"""The page of operators is what is registered, and what it says of one holds."""

from __future__ import annotations

import onnx
import pytest

from tests.docs.operator_table import OPSET, PAGE, page

if onnx.defs.onnx_opset_version() < OPSET:
    pytest.skip(f"the page is of opset {OPSET}, which this onnx does not have", allow_module_level=True)


def rows() -> dict[str, list[str]]:
    cells = [line.strip("| \n").split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines()]
    return {each[0]: each[1:] for each in cells if len(each) == 4}


def test_the_page_is_what_is_registered() -> None:
    assert page() == PAGE.read_text(encoding="utf-8"), "python -m tests.docs.operator_table writes it anew"


@pytest.mark.parametrize(
    ("operator", "cells"),
    [
        ("Relu", ["1 6 13 14", "floats, ints", "kernel"]),
        ("If", ["1 11 13 16 19 21 23 24 25", "bool", "import"]),
        ("NonZero", ["9 13", "floats, ints, uints, bool", "host"]),
        ("TreeEnsembleRegressor", ["1 3", "`float32`, `float64`, `int32`, `int64`", "kernel"]),
        (
            "OneHot",
            ["9 11", "floats but `bfloat16`, ints, uints", "kernel; host where data decide its sizes, or what it does"],
        ),
    ],
)
def test_what_it_says_of_an_operator(operator: str, cells: list[str]) -> None:
    assert rows()[operator] == cells


def test_both_variants_are_reported() -> None:
    assert rows()["AffineGrid"][2].startswith("definition; host where data decide")
    assert rows()["Resize"][2].startswith("kernel; host where data decide its sizes, or what it does")
