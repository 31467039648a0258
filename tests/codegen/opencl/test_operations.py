"""Operations of the lowered form as OpenCL C on a real driver, scalar and on vectors, against numpy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects import arith, func, gpu
from xdsl.dialects.arith import CMPF_COMPARISON_OPERATIONS, CMPI_COMPARISON_OPERATIONS
from xdsl.dialects.builtin import FunctionType, IndexType, IntegerAttr, ModuleOp
from xdsl.ir import Block, Region

from landbridge.codegen.opencl import generate
from landbridge.dtypes import numpy_dtype
from landbridge.targets import Target
from tests.codegen.native import parse, pointwise
from tests.codegen.opencl.launcher import Program
from tests.codegen.test_byte_dot import byte_dots

Array = np.ndarray[Any, Any]
SIZE = 32
RNG = np.random.default_rng(3)


@dataclass(frozen=True)
class Case:
    """An operation: its MLIR, the dtypes of its inputs and its output, and what numpy makes of the inputs."""

    body: str
    inputs: dict[str, str]
    output: str
    expected: Callable[..., Any]


def binary(op: str, dtype: str, expected: Callable[..., Any], flags: str = "") -> Case:
    return Case(f"%r = {op} %x, %y{flags} : {{T}}", {"x": dtype, "y": dtype}, dtype, expected)


def unary(op: str, dtype: str, expected: Callable[..., Any]) -> Case:
    return Case(f"%r = {op} %x : {{T}}", {"x": dtype}, dtype, expected)


def cast(op: str, source: str, output: str, expected: Callable[..., Any] | None = None) -> Case:
    to = numpy_dtype(output)
    return Case(f'%r = "{op}"(%x) : ({{T:x}}) -> {{T}}', {"x": source}, output, expected or (lambda x: x.astype(to)))


def compare(op: str, dtype: str, expected: Callable[..., Any]) -> Case:
    """A comparison, as what a selection by it gives."""
    name, predicate = op.split()
    known = CMPF_COMPARISON_OPERATIONS if name == "arith.cmpf" else CMPI_COMPARISON_OPERATIONS
    properties = f"predicate = {known.index(predicate)} : i64"
    if name == "arith.cmpf":
        properties += ", fastmath = #arith.fastmath<none>"
    body = (
        f'%c = "{name}"(%x, %y) <{{{properties}}}> : ({{T:x}}, {{T:x}}) -> {{C}}\n'
        '%r = "arith.select"(%c, %x, %z) : ({C}, {T}, {T}) -> {T}'
    )
    return Case(body, dict.fromkeys("xyz", dtype), dtype, lambda x, y, z: np.where(expected(x, y), x, z))


def signed(x: Array) -> Array:
    return x.view(np.dtype(f"int{8 * x.itemsize}"))


CASES = {
    "addf": binary("arith.addf", "float32", np.add),
    "divf": binary("arith.divf", "float32", np.divide),
    "divf64": binary("arith.divf", "float64", np.divide),
    "maximumf": binary("arith.maximumf", "float32", np.maximum),
    "minimumf": binary("arith.minimumf", "float32", np.minimum),
    "maxnumf": binary("arith.maxnumf", "float32", np.fmax),
    "addf16": binary("arith.addf", "float16", np.add),
    "mulbf16": binary("arith.mulf", "bfloat16", np.multiply),
    "muladd": Case(
        "%p = arith.mulf %x, %y fastmath<contract> : {T}\n    %r = arith.addf %p, %z fastmath<contract> : {T}",
        dict.fromkeys("xyz", "float32"),
        "float32",
        lambda x, y, z: x.astype(np.float64) * y + z,
    ),
    "negf": unary("arith.negf", "float32", np.negative),
    "exp": unary("math.exp", "float32", lambda x: np.exp(x.astype(np.float64))),
    "tanh": unary("math.tanh", "float32", lambda x: np.tanh(x.astype(np.float64))),
    "floor": unary("math.floor", "float32", np.floor),
    "roundeven": unary("math.roundeven", "float32", np.rint),
    "absf": unary("math.absf", "float32", np.abs),
    "byte_dot": Case(
        '%r = "lb.byte_dot"(%x, %y) : ({T:x}, {T:y}) -> {T}', dict.fromkeys("xy", "int32"), "int32", byte_dots
    ),
    "addi": binary("arith.addi", "int8", np.add),
    "muli": binary("arith.muli", "int32", np.multiply),
    "andi": binary("arith.andi", "int16", np.bitwise_and),
    "xori": binary("arith.xori", "bool", np.logical_xor),
    "maxsi": binary("arith.maxsi", "int32", np.maximum),
    "maxui": binary("arith.maxui", "uint8", np.maximum),
    "minsi64": binary("arith.minsi", "int64", np.minimum),
    "shrsi": Case(
        "%c = arith.andi %y, %y : {T}\n    %r = arith.shrsi %x, %c : {T}",
        {"x": "int32", "y": "small"},
        "int32",
        np.right_shift,
    ),
    "olt": compare("arith.cmpf olt", "float32", np.less),
    "une": compare("arith.cmpf une", "float32", np.not_equal),
    "ueq": compare("arith.cmpf ueq", "float32", lambda x, y: (x == y) | np.isnan(x) | np.isnan(y)),
    "uno": compare("arith.cmpf uno", "float32", lambda x, y: np.isnan(x) | np.isnan(y)),
    "oge64": compare("arith.cmpf oge", "float64", np.greater_equal),
    "slt": compare("arith.cmpi slt", "int8", np.less),
    "ult": compare("arith.cmpi ult", "uint16", np.less),
    "sge": compare("arith.cmpi sge", "int64", np.greater_equal),
    "sitofp": cast("arith.sitofp", "int32", "float32"),
    "uitofp": cast("arith.uitofp", "uint8", "float32"),
    "of_bool": cast("arith.uitofp", "bool", "float32"),
    "fptosi": cast("arith.fptosi", "small_float", "int32"),
    "fptoui": cast("arith.fptoui", "positive", "uint8"),
    "extsi": cast("arith.extsi", "int8", "int64"),
    "extui": cast("arith.extui", "uint8", "int32"),
    "trunci": cast("arith.trunci", "int32", "int8"),
    "extf": cast("arith.extf", "float16", "float32"),
    "truncf": cast("arith.truncf", "float32", "bfloat16"),
    "extf64": cast("arith.extf", "float32", "float64"),
}  # fmt: skip
_DRAWN = {"small": "int32", "small_float": "float32", "positive": "float32"}


def draw(name: str) -> Array:
    """Values of a dtype, or of one of the ranges above; floats among them have NaN, infinities and both zeros."""
    if name == "small":
        return RNG.integers(0, 31, SIZE).astype(np.int32)
    if name in ("small_float", "positive"):
        return (RNG.random(SIZE) * 200 + (-100 if name == "small_float" else 0)).astype(np.float32)
    dtype = np.dtype(bool) if name == "bool" else numpy_dtype(name)
    if name == "bool":
        return RNG.random(SIZE) < 0.5
    if np.issubdtype(dtype, np.integer):
        limits = np.iinfo(dtype)
        return RNG.integers(limits.min, limits.max, SIZE, dtype, endpoint=True)
    values = RNG.normal(0, 3, SIZE)
    values[:6] = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5]
    return RNG.permutation(values).astype(dtype)


def launches(module: ModuleOp) -> ModuleOp:
    """Functions ``(memrefs..., begin, end)`` as one launch each, of one work-item that does all."""
    made = []
    for function in module.body.block.ops:
        assert isinstance(function, func.FuncOp)
        old = function.body.block
        memrefs = list(old.args[:-2])
        outer = Block(arg_types=[a.type for a in memrefs])
        one = arith.ConstantOp(IntegerAttr(1, IndexType()))
        body = Block(arg_types=[IndexType()] * 12)
        begin, end = (arith.ConstantOp(IntegerAttr(n, IndexType())) for n in (0, SIZE))
        body.add_ops([begin, end])
        for a, b in zip(old.args, (*outer.args, begin.result, end.result), strict=True):
            a.replace_all_uses_with(b)
        for op in list(old.ops):
            op.detach()
            if not isinstance(op, func.ReturnOp):
                body.add_op(op)
        body.add_op(gpu.TerminatorOp.create())
        shape = [one.result] * 3
        outer.add_ops([one, gpu.LaunchOp(Region(body), shape, shape), func.ReturnOp()])
        ty = FunctionType.from_lists([a.type for a in memrefs], [])
        made.append(func.FuncOp(function.sym_name.data, ty, Region(outer)))
    return ModuleOp(made)


@pytest.fixture(scope="module", params=[0, 2, 16], ids=["scalar", "2", "16"])
def built(request: pytest.FixtureRequest) -> Program:
    """All cases in one program, with so many lanes."""
    lanes = request.param
    texts = []
    for name, case in CASES.items():
        body = case.body.replace("{C}", f"vector<{lanes}xi1>" if lanes else "i1")
        inputs = {k: _DRAWN.get(t, t) for k, t in case.inputs.items()}
        texts.append(pointwise(name, body, inputs, case.output, SIZE, lanes))
    image = generate(launches(parse("\n".join(texts))), Target("opencl -fp64=1")).image
    return Program(image)  # type: ignore[arg-type]


@pytest.mark.sample(23)
@pytest.mark.parametrize("name", CASES)
def test_operation(name: str, built: Program) -> None:
    case = CASES[name]
    inputs = [draw(t) for t in case.inputs.values()]
    with np.errstate(all="ignore"):
        expected = np.asarray(case.expected(*inputs))
    result = np.empty(SIZE, numpy_dtype(case.output))
    built.on_arrays(name, inputs, [result])
    if result.dtype.kind not in "fV":
        np.testing.assert_array_equal(result, expected.astype(result.dtype))
        return
    wide, expected = result.astype(np.float64), expected.astype(np.float64)
    # Units in the last place that OpenCL allows: 4 of exp and the like, 2.5 of a division (3.0 spec, section 7.4).
    unit = float(ml_dtypes.finfo(result.dtype).eps)
    np.testing.assert_allclose(wide, expected, rtol=5 * unit, atol=1e-30)
    zeros = expected == 0
    if name not in ("maximumf", "minimumf", "maxnumf"):  # where which zero is open
        np.testing.assert_array_equal(np.signbit(wide[zeros]), np.signbit(expected[zeros]))
