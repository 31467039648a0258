"""Sizes that depend on a length become arithmetic on what a kernel loads; no capacity makes launches larger."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from tests.session.state_histories import read
from tests.session.test_states_on_devices import PLACES, on
from xdsl.dialects import arith, func, gpu, scf
from xdsl.dialects.builtin import FunctionType, IndexType, IntegerAttr
from xdsl.ir import Block, Region, SSAValue

from landbridge.codegen.grid import grid_function
from landbridge.ir.length_ops import LengthOp, SizedByOp, has_lengths, is_length, new_length, reserved
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.types import tensor_type
from landbridge.passes.lower import lowering_for
from landbridge.passes.lower.lengths import compute_sizes
from landbridge.sizes.size import Extent, Size, ceildiv, dimension, largest, of_symbol, smallest
from landbridge.targets import Target

INTEGER = tensor_type((), "int32")
GPU = "opencl -device-class=gpu"
CORES = "opencl -device-class=cpu -vector-bits=512 -vector-registers=32 -num-cores=2"
SHADER = "vulkan"


def length(capacity: int) -> Size:
    found = new_length(0, 1, capacity, 64)
    assert isinstance(found, Size)
    return found


def evaluated(value: SSAValue, given: int) -> int:
    """The value of index arithmetic, where block arguments are ``given``."""
    op = value.owner
    if isinstance(op, Block):
        return given
    if isinstance(op, arith.ConstantOp):
        assert isinstance(op.value, IntegerAttr)
        return op.value.value.data
    a, b = (evaluated(operand, given) for operand in op.operands)
    return {
        arith.AddiOp: lambda: a + b,
        arith.MuliOp: lambda: a * b,
        arith.FloorDivSIOp: lambda: a // b,
        arith.MaxSIOp: lambda: max(a, b),
        arith.MinSIOp: lambda: min(a, b),
    }[type(op)]()


@pytest.mark.parametrize(
    "size",
    [
        length(100),
        length(100) * 8,
        ceildiv(length(100) * 3, 16),
        length(100) * length(100) - 7,
        largest(length(100) - 4, 0) // 4 * 5 + 1,
        smallest(length(100), 33),
        ceildiv(ceildiv(length(100), 4) * 8, largest(ceildiv(length(100), 64), 1)),
    ],
    ids=str,
)
def test_arithmetic_has_the_value_of_the_size(size: Extent) -> None:
    assert isinstance(size, Size)
    block = Block(arg_types=[IndexType()])
    (name,) = size.symbols
    op = SizedByOp(size, {name: block.args[0]})
    block.add_ops([op, func.ReturnOp(op.result)])
    index = IndexType()
    compute_sizes(func.FuncOp("f", FunctionType.from_lists([index], [index]), Region(block)))
    end = block.last_op
    assert isinstance(end, func.ReturnOp) and not any(isinstance(each, SizedByOp) for each in block.ops)
    for given in (-5, 0, 1, 2, 15, 16, 17, 63, 64, 65, 99, 100, 101, 1 << 40):
        assert evaluated(end.operands[0], given) == size.at({name: given})


def test_the_capacity_is_the_largest_value() -> None:
    size = ceildiv(length(100) * 3, 16)
    assert isinstance(size, Size)
    assert has_lengths([size]) and reserved(size) == 19 == max(size.at({"lb_length_0": n}) for n in range(200))
    batch = dimension("N")
    assert reserved(length(100) * batch) == batch * 100
    assert reserved(batch) == batch and reserved(7) == 7 and not has_lengths([batch, 7])
    assert is_length("lb_length_0") and not is_length("N")


def centred(capacity: int) -> func.FuncOp:
    """Eight rows of a length, each less its sum: a reduction along the length, and a loop over it."""
    extent = length(capacity)
    row = tensor_type((8, extent), "float32")
    p = PrimBuilder("centred", [row, INTEGER], [row])
    total = p.temp([8], "float32")
    rows = (p.inputs[0], lambda i, j: (i, j))
    p.generic("pr", [8, extent], [rows], [(total, lambda i, j: (i,))], lambda s, acc, x: acc + x, init=0.0)
    sums = (total, lambda i, j: (i,))
    p.generic("pp", [8, extent], [rows, sums], [(p.outputs[0], rows[1])], lambda s, x, sum: x - sum)
    return with_length(p.finish(), extent)


def with_length(function: func.FuncOp, extent: Size) -> func.FuncOp:
    """``function``, whose second operand is the length in ``extent``."""
    (symbol,) = extent.symbols.values()
    block = function.body.block
    assert block.first_op is not None
    block.insert_op_before(LengthOp(block.args[1], of_symbol(symbol)), block.first_op)
    return function


@pytest.mark.parametrize("target", [GPU, CORES, SHADER])
def test_no_launch_is_larger_for_a_larger_capacity(target: str) -> None:
    """Workgroups that have nothing to do cost time, so that a step would take longer in a larger buffer."""
    launches = []
    for capacity in (1 << 14, 1 << 20):
        lowered = lowering_for(Target(target))(centred(capacity))
        assert any(isinstance(op, gpu.LaunchOp) for op in lowered.body.block.ops)
        sequence = grid_function(lowered, "k").sequence
        assert sequence.operands == 3 and not sequence.is_open  # the host gives no words
        launches.append([(launch.grid, launch.block) for launch in sequence.launches])
    assert launches[0] == launches[1]


def test_local_memory_is_used_again_after_a_barrier() -> None:
    """Work-items of a workgroup that takes another row wait for those that read the sum of the last one."""
    extent = length(1 << 14)
    p = PrimBuilder("sums", [tensor_type((extent, 512), "float32"), INTEGER], [tensor_type((extent,), "float32")])
    sums = (p.outputs[0], lambda i, j: (i,))
    p.generic("pr", [extent, 512], [(p.inputs[0], lambda i, j: (i, j))], [sums], lambda s, acc, x: acc + x, init=0.0)
    lowered = lowering_for(Target(GPU))(with_length(p.finish(), extent))
    (launch,) = (op for op in lowered.body.block.ops if isinstance(op, gpu.LaunchOp))
    (rows,) = (op for op in launch.body.block.ops if isinstance(op, scf.ForOp))
    barriers = [op for op in rows.body.block.ops if isinstance(op, gpu.BarrierOp)]
    end = rows.body.block.last_op
    assert end is not None and len(barriers) > 1 and barriers[-1] is end.prev_op


@pytest.mark.parametrize("place", PLACES)
def test_rows_that_workgroups_share(place: str) -> None:
    """As many rows as the length, each normalized by a workgroup, which takes several one after the other."""
    rows = 300
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 21, "landbridge" : 1]>
        g (int32[1] length, float[{rows}, 200] x) => (float[200] y) {{
            n = landbridge.LongestFilled <axis = 0> (length, x)  zero = Constant <value_ints = [0]> ()
            filled = Slice (x, zero, n, zero)  weights = Softmax <axis = 1> (filled)
            y = ReduceSum <keepdims = 0> (weights, zero) }}""")
    session = on(place, model)
    x = np.random.default_rng(7).standard_normal((rows, 200)).astype(np.float32)
    for filled in (1, 31, 32, 33, 257, rows, 1000):
        weights = np.exp(x[:filled])
        expected = (weights / weights.sum(1, keepdims=True)).sum(0)
        behind = x.copy()
        behind[filled:] = np.nan
        (y,) = session(np.array([filled], np.int32), behind)
        np.testing.assert_allclose(read(y), expected, rtol=1e-5)
