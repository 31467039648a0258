"""Accesses of open kernels are proved for all sizes, and no others."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
import pytest
from tests.open_dimensions.models import attention, convolutions, parts
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import Rewriter

import landbridge as lb
from landbridge.analysis.linear_forms import Form, constant
from landbridge.analysis.open_ranges import OpenRanges
from landbridge.analysis.verify_accesses import verify_accesses
from landbridge.codegen.registry import declined
from landbridge.compiler.compilation import PIPELINE
from landbridge.errors import AccessError
from landbridge.frontend.onnx.import_request import ImportRequest
from landbridge.frontend.onnx.importer import import_onnx
from landbridge.ir.kernel_attributes import set_sizes, sizes_of
from landbridge.ir.types import extents_attr, shape_of
from landbridge.passes.lower.prims import lowering_for
from landbridge.passes.registry import run_pipeline
from landbridge.sizes.dim import declared_dimensions
from landbridge.sizes.size import Size, ceildiv, dimension, largest
from landbridge.targets import Target

#: Vectors of a CPU, workgroups of a GPU, and tasks of a CPU as workgroups.
TARGETS = ("llvm -mcpu=x86-64-v3", "opencl", "opencl -device-class=cpu -vector-bits=256 -vector-registers=16")
MODELS = {
    "convolutions": (convolutions, {"N": "1..1", "H": "1..40", "W": "1..70@33"}),
    "by 8": (convolutions, {"N": "1..1", "H": "16..64:8", "W": "8..256:8"}),
    "attention": (attention, {"N": "1..3", "T": "1..50"}),
    "parts": (parts, {"L": "2..90"}),
}


@pytest.fixture(scope="module", params=[(model, target) for target in TARGETS for model in MODELS], ids=str)
def kernels(request: pytest.FixtureRequest) -> list[func.FuncOp]:
    """The open kernels of a model for a target, proved."""
    model, target = request.param[0], Target(request.param[1])
    make, dims = MODELS[model]
    module = import_onnx(ImportRequest(make(), (target,), dimensions=declared_dimensions(dims))).module
    module.declined = declined
    module = run_pipeline(module, PIPELINE)
    lower = lowering_for(target)
    found = [lower(function) for function in module.prims().values()]
    return [function for function in found if sizes_of(function)]


def refused(function: func.FuncOp) -> bool:
    try:
        verify_accesses(function)
    except AccessError:
        return True
    return False


def operands(function: func.FuncOp) -> int:
    """How many operands ``function`` has before its words."""
    return sum(isinstance(argument.type, MemRefType) for argument in function.body.block.args) - 1


def shrunk(function: func.FuncOp) -> Iterator[tuple[int, func.FuncOp]]:
    """The function with one element less in each operand whose number of elements is open."""
    for number, argument in enumerate(function.body.block.args[: operands(function)]):
        ty = argument.type
        assert isinstance(ty, MemRefType)
        (extent,) = shape_of(ty)
        if isinstance(extent, Size):
            copy = function.clone()
            smaller = MemRefType.new([extents_attr([extent - 1]), ty.element_type, ty.layout, ty.memory_space])
            Rewriter.replace_value_with_new_type(copy.body.block.args[number], smaller)
            yield number, copy


@pytest.mark.sample(4)
def test_an_operand_that_is_too_small_is_seen(kernels: list[func.FuncOp]) -> None:
    """A kernel writes the last element of its result, but where that is a part of a larger one (``parts``)."""
    whole = partial = 0
    for function in kernels:
        last = operands(function) - 1
        for number, smaller in shrunk(function):
            if number == last:
                whole += refused(smaller)
                partial += 1
    assert whole > partial // 2


@pytest.mark.sample(4)
def test_words_of_other_sizes_are_seen(kernels: list[func.FuncOp]) -> None:
    """A word that is one more leads out of an operand, but where others bound the same index, or it splits work."""
    seen = total = 0
    for function in kernels:
        sizes = sizes_of(function)
        for number in range(min(len(sizes), 4)):
            copy = function.clone()
            set_sizes(copy, [size + 1 if n == number else size for n, size in enumerate(sizes)])
            seen += refused(copy)
            total += 1
    assert seen > total // 4


@pytest.mark.sample(4)
def test_an_index_that_is_one_more_is_seen(kernels: list[func.FuncOp]) -> None:
    """The last stores of a kernel, an element further; those of all but the last columns stay inside."""
    caught = total = 0
    for function in kernels:
        copy = function.clone()
        stores = [op for op in copy.walk() if op.name in ("memref.store", "vector.store", "vector.maskedstore")][-2:]
        for op in stores:
            position = 1 if op.name == "vector.maskedstore" else 2
            index: SSAValue = op.operands[position]
            one = arith.ConstantOp(IntegerAttr(1, index.type))  # type: ignore[arg-type]
            more = arith.AddiOp(index, one.result)
            block = op.parent_block()
            assert block is not None
            block.insert_ops_before([one, more], op)
            op.operands[position] = more.result
            caught += refused(copy)
            total += 1
            op.operands[position] = index
            Rewriter.erase_op(more)
            Rewriter.erase_op(one)
    assert caught > total // 2


def test_a_quotient_of_less_than_a_product_is_less_than_a_factor() -> None:
    """(8 * W - 17) / W is at most 7: what is subtracted in all counts as one."""
    w = dimension("W", 4, 640)
    index = arith.ConstantOp(IntegerAttr(0, IndexType())).result
    block = Block(arg_types=[IndexType(), MemRefType(IndexType(), [1])])
    words = block.args[1]
    load = memref.LoadOp.get(words, [index])
    quotient = arith.DivUIOp(block.args[0], load.res)
    ranges = OpenRanges(words, [w])
    ranges.define(block.args[0], [constant(0)], [constant(8 * w - 17)])
    assert ranges.is_at_most(ranges.form(quotient.result), 7)
    assert not ranges.is_at_most(ranges.form(quotient.result), 6)


def test_what_may_be_nothing_is_something_where_it_is_walked_through() -> None:
    """In a loop over a dimension that may be 0, or in a task of as many, it is at least 1; elsewhere it is not."""
    some, other = dimension("some", 0), dimension("other", 0)
    words = Block(arg_types=[IndexType()]).args[0]

    def is_proved(ranges: OpenRanges) -> bool:
        return ranges.is_at_most(constant(1 - some), 0)

    ranges = OpenRanges(words, (some,))
    assert not is_proved(ranges)
    for iterations, proved in (
        (some, True),
        (ceildiv(some, 8), True),
        (some * other, True),
        (some + 1, False),
        (other, False),
    ):
        with ranges.entered(constant(iterations)):
            assert is_proved(ranges) is proved
        assert not is_proved(ranges)
        assert is_proved(OpenRanges(words, (some,), iterations)) is proved


def test_a_task_that_may_have_no_rows_enters_no_loop_over_them_where_there_are_none() -> None:
    """Of 8 rows at a time from row ``8 * task`` on, up to ``some``: in the loop over them ``some`` is at least 1."""
    some = dimension("some", 0)
    block = Block(arg_types=[IndexType(), IndexType(), IndexType()])
    words, task, end = block.args
    ranges = OpenRanges(words, (some,), largest(ceildiv(some, 8), 1))
    ranges.define(task, [constant(0)], [constant(largest(ceildiv(some, 8), 1) - 1)])
    first = ranges.form(task).scaled(8)
    ranges.define(end, [], [first.plus(constant(8)), constant(some)])
    assert not ranges.is_at_most(constant(1 - some), 0)
    with ranges.entered(ranges.form(end).plus(first, -1)):
        assert ranges.is_at_most(constant(1 - some), 0)
    assert not ranges.is_at_most(constant(1 - some), 0)


def test_indices_of_loops_in_loops_are_proved_by_what_ends_soonest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight loops, each counter a quotient or remainder of the one around: thousands of forms lead to no number, and
    of some hundred accesses each would ask them all, were the bounds that bring in other counters asked first."""
    tile = """<ir_version: 8, opset_import: ["": 18]>
        g (float[2, 3, 4, 5] x, int64[4] r) => (float[A, B, C, D] y) { y = Tile(x, r) }"""
    requested = 0
    replaced = OpenRanges._replaced

    def counted(ranges: OpenRanges, form: Form) -> Iterator[Form]:
        nonlocal requested
        requested += 1
        return replaced(ranges, form)

    monkeypatch.setattr(OpenRanges, "_replaced", counted)
    lb.compile(onnx.parser.parse_model(tile), TARGETS[0])
    assert 0 < requested < 5_000
