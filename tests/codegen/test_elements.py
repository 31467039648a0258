from __future__ import annotations

import pytest
from xdsl.dialects.builtin import IndexType, IntegerType, NoneAttr, VectorType, bf16, f16, f64
from xdsl.ir import Attribute

from landbridge.codegen.elements import bits_in_memory, element_name, narrow_bits


@pytest.mark.parametrize(
    ("attr", "name"),
    [
        (IntegerType(1), "i1"),
        (IndexType(), "index"),
        (f16, "f16"),
        (bf16, "bf16"),
        (f64, "f64"),
        (VectorType(f64, [2]), ""),
        (NoneAttr(), ""),
    ],
)
def test_only_scalars_have_an_element(attr: Attribute, name: str) -> None:
    assert element_name(attr) == name


def test_narrow_floats_are_rounded_to_nearest_even() -> None:
    assert (narrow_bits(1.0, "f16"), narrow_bits(1.0, "bf16")) == (0x3C00, 0x3F80)
    assert narrow_bits(1 + 2.0**-11, "f16") == 0x3C00 and narrow_bits(1 + 3 * 2.0**-11, "f16") == 0x3C02
    assert narrow_bits(1 + 2.0**-8, "bf16") == 0x3F80 and narrow_bits(-0.0, "bf16") == 0x8000


@pytest.mark.parametrize(("element", "bits"), [("i1", 8), ("s16", 16), ("i64", 64), ("index", 64), ("bf16", 16)])
def test_an_element_takes_whole_bytes(element: str, bits: int) -> None:
    assert bits_in_memory(element) == bits
