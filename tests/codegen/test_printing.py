from __future__ import annotations

import pytest
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import VectorType, f32
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Operation

from landbridge.codegen.printing import Dispatcher, allows, by_identity, constant_values, predicate
from landbridge.errors import CodegenError

from .native import parse


def operations(body: str) -> list[Operation]:
    """The operations of a function with ``body``."""
    module = parse(f"func.func @f(%x: f32, %b: index, %e: index) {{\n{body}\nfunc.return\n}}")
    (function,) = module.body.block.ops
    assert isinstance(function, func.FuncOp)
    return list(function.body.block.ops)


class _Words(Dispatcher):
    """Notes the names of additions, and has a form for nothing else."""

    form = "spoken"

    def __init__(self) -> None:
        self.output: list[str] = []
        super().__init__({arith.AddfOp: lambda e, op: e.output.append(op.name)})


def test_an_operation_goes_to_the_printer_of_its_class() -> None:
    add, *_ = operations("%r = arith.addf %x, %x : f32")
    words = _Words()
    words.region([add, add])
    assert words.output == ["arith.addf", "arith.addf"]


def test_an_operation_without_a_printer_is_refused_by_name() -> None:
    with pytest.raises(CodegenError, match=r"'arith.mulf' has no spoken form; lower it first. Known: arith.addf$"):
        _Words().region(operations("%r = arith.mulf %x, %x : f32"))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("2.5 : f32", [2.5]),
        ("-3 : i8", [-3]),
        ("dense<7> : vector<4xi32>", [7]),
        ("dense<[1, 1, 1]> : vector<3xi32>", [1]),
        ("dense<[1, 0, 1]> : vector<3xi1>", [1, 0, 1]),
    ],
)
def test_a_constant_is_one_value_or_one_of_each_lane(text: str, values: list[float]) -> None:
    constant, *_ = operations(f"%c = arith.constant {text}")
    # An i1 keeps its one bit as -1 or as 1.
    assert [abs(v) if "i1>" in text else v for v in constant_values(constant, "C")] == values


def test_predicates_of_both_comparisons_have_their_names() -> None:
    floats, integers, *_ = operations("%p = arith.cmpf ult, %x, %x : f32\n%q = arith.cmpi sge, %b, %e : index")
    assert (predicate(floats), predicate(integers)) == ("ult", "sge")


def test_a_flag_is_allowed_where_it_stands() -> None:
    flagged, plain, *_ = operations("%p = arith.addf %x, %x fastmath<nsz> : f32\n%q = arith.addf %x, %x : f32")
    assert allows(flagged, FastMathFlag.NO_SIGNED_ZEROS)
    assert not allows(flagged, FastMathFlag.REASSOC) and not allows(plain, FastMathFlag.NO_SIGNED_ZEROS)


def test_a_type_is_looked_at_once() -> None:
    requested: list[Attribute] = []

    def spelled(attr: Attribute) -> str:
        requested.append(attr)
        return str(attr)

    of = by_identity(spelled)
    vector = VectorType(f32, [8])
    assert [of(vector), of(vector), of(f32)] == ["vector<8xf32>", "vector<8xf32>", "f32"]
    assert requested == [vector, f32]
