"""The form of launches: shapes within the target's limits, what prints also parses, what a target cannot run."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import func, gpu, memref
from xdsl.dialects.builtin import MemRefType, StringAttr

from landbridge.analysis.verify_accesses import verify_accesses
from landbridge.codegen.grid import grid_function
from landbridge.errors import AccessError, CodegenError
from landbridge.ir.kernel_attributes import sizes_of
from landbridge.ir.module import IRModule
from landbridge.ir.prim_builder import PrimBuilder
from landbridge.ir.types import nbytes_of, tensor_type
from landbridge.passes.lower import lowering_for, prims
from landbridge.passes.lower.grid.supports import supports
from landbridge.passes.lower.grid.tiles import choose_tiles
from landbridge.sizes.size import Extent, Size, dimension
from landbridge.targets import Target
from landbridge.targets.grid import grid_limits

SMALL = "opencl -max-workgroup-size=64 -local-memory-bytes=4096"
CPU = "opencl -device-class=cpu -vector-bits=512 -vector-registers=32"


def relu(p: PrimBuilder) -> None:
    (rows, columns) = p.inputs[0].type.get_shape()  # type: ignore[attr-defined]
    operand = (p.inputs[0], lambda i, j: (i, j))
    p.generic("pp", [rows, columns], [operand], [(p.outputs[0], operand[1])], lambda s, x: s.maximum(x, 0))


def matmul(p: PrimBuilder) -> None:
    (m, k), (_, n) = (a.type.get_shape() for a in p.inputs)  # type: ignore[attr-defined]
    p.generic(
        "ppr",
        [m, n, k],
        [(p.inputs[0], lambda i, j, r: (i, r)), (p.inputs[1], lambda i, j, r: (r, j))],
        [(p.outputs[0], lambda i, j, r: (i, j))],
        lambda s, acc, a, b: acc + a * b,
        init=0.0,
    )


def centred(p: PrimBuilder) -> None:
    """Rows minus their sums: two nests."""
    rows, columns = p.inputs[0].type.get_shape()  # type: ignore[attr-defined]
    total = p.temp([rows], "float32")
    p.generic(
        "pr",
        [rows, columns],
        [(p.inputs[0], lambda i, j: (i, j))],
        [(total, lambda i, j: (i,))],
        lambda s, acc, x: acc + x,
        init=0.0,
    )
    p.generic(
        "pp",
        [rows, columns],
        [(p.inputs[0], lambda i, j: (i, j)), (total, lambda i, j: (i,))],
        [(p.outputs[0], lambda i, j: (i, j))],
        lambda s, x, t: x - t,
    )


def largest_sum(p: PrimBuilder) -> None:
    """The largest of the sums of each row: a workgroup reduces several points of a row, one after the other."""
    rows, points, columns = p.inputs[0].type.get_shape()  # type: ignore[attr-defined]
    totals = p.temp([rows, points], "float32")
    p.generic(
        "ppr",
        [rows, points, columns],
        [(p.inputs[0], lambda i, j, k: (i, j, k))],
        [(totals, lambda i, j, k: (i, j))],
        lambda s, acc, x: acc + x,
        init=0.0,
    )
    p.generic(
        "pr",
        [rows, points],
        [(totals, lambda i, j: (i, j))],
        [(p.outputs[0], lambda i, j: (i,))],
        lambda s, acc, x: s.maximum(acc, x),
        init=-1e30,
    )


def prim(
    build: Callable[[PrimBuilder], None],
    inputs: list[tuple[Extent, ...]],
    output: tuple[Extent, ...],
    dtype: str = "float32",
) -> func.FuncOp:
    p = PrimBuilder("kernel", [tensor_type(s, dtype) for s in inputs], [tensor_type(output, dtype)])
    build(p)
    return p.finish()


def lowered(function: func.FuncOp, target: str) -> func.FuncOp:
    made = lowering_for(Target(target))(function)
    made.verify()
    return made


@pytest.mark.parametrize("target", ["opencl", SMALL, CPU, "vulkan"])
@pytest.mark.parametrize(
    "function",
    [
        prim(relu, [(33, 1000)], (33, 1000)),
        prim(matmul, [(70, 50), (50, 90)], (70, 90)),
        prim(matmul, [(1, 4096), (4096, 10)], (1, 10)),
        prim(centred, [(40, 300)], (40, 300)),
        prim(centred, [(5000, 3)], (5000, 3)),
    ],
    ids=["relu", "matmul", "vector", "rows", "short rows"],
)
def test_launches_stay_within_the_limits(function: func.FuncOp, target: str) -> None:
    limits = grid_limits(Target(target))
    assert limits is not None
    kernels = grid_function(lowered(function.clone(), target), "k").kernels
    assert kernels
    for kernel in kernels:
        x, y, z = kernel.block
        assert x * y * z <= limits.workgroup_size
        assert all(n <= limits.workgroups for n in kernel.grid)
        local = [op.memref.type for op in kernel.body.walk() if isinstance(op, memref.AllocOp)]
        assert all(isinstance(t, MemRefType) and t.memory_space == StringAttr("local") for t in local)
        assert sum(map(nbytes_of, local)) <= limits.local_bytes


@pytest.mark.parametrize("target", ["opencl", CPU])
def test_what_prints_also_parses(target: str) -> None:
    text = str(lowered(prim(matmul, [(70, 50), (50, 90)], (70, 90)), target))
    module = "builtin.module {\n" + text + "\nfunc.func @main() {\n  func.return\n}\n}"
    again = IRModule.parse(module, (Target(target),)).op.body.block.first_op
    assert str(again) == text


def test_a_large_grid_is_spread_over_two_dimensions() -> None:
    function = prim(relu, [(65536, 256)], (65536, 256))
    (kernel,) = grid_function(lowered(function, "vulkan -max-workgroups=1000"), "k").kernels
    width, height, _ = kernel.grid
    assert max(width, height) <= 1000 and width * height * kernel.block[0] >= 65536 * 256


W, N = dimension("W", 1, 4096), dimension("N")


@pytest.mark.parametrize("target", ["opencl", SMALL, CPU, "vulkan"])
@pytest.mark.parametrize(
    "function",
    [
        prim(relu, [(N, W)], (N, W)),
        prim(matmul, [(N, 50), (50, W)], (N, W)),
        prim(matmul, [(70, W), (W, 90)], (70, 90)),
        prim(matmul, [(1, dimension("K", 4096, 65536)), (dimension("K", 4096, 65536), 10)], (1, 10)),
        prim(centred, [(N, 300)], (N, 300)),
        prim(centred, [(N, W)], (N, W)),
        prim(largest_sum, [(N, 4, W)], (N,)),
    ],
    ids=["relu", "matmul", "long sums", "divided sums", "rows", "open rows", "points of a row"],
)
def test_launches_of_open_sizes_read_words_of_the_last_operand(function: func.FuncOp, target: str) -> None:
    limits = grid_limits(Target(target))
    assert limits is not None
    made = lowered(function.clone(), target)
    found = grid_function(made, "k")
    sizes = sizes_of(made)
    assert sizes and all(isinstance(size, Size) for size in sizes)
    assert found.sequence.operands == len(made.body.block.args) == len(function.body.block.args) + 1
    for w, n in ((1, 1), (64, 3), (4096, 70_000)):
        values = {"W": w, "N": n, "K": 4096 + w}
        known = found.sequence.at([size.at(values) for size in sizes])  # type: ignore[attr-defined]
        assert known.launches and all(max(each.grid) <= limits.workgroups for each in known.launches)
    assert {kernel.words for kernel in found.kernels} - {None} == {made.body.block.args[-1]}


@pytest.mark.parametrize("target", ["opencl", CPU])
def test_kernels_whose_accesses_are_not_proved_are_made_of_points(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[func.FuncOp] = []

    def refuse_first(function: func.FuncOp) -> None:
        tried.append(function)
        if len(tried) == 1:
            raise AccessError("not proved", "kernel")
        verify_accesses(function)

    monkeypatch.setattr(prims, "verify_accesses", refuse_first)
    made = lowered(prim(matmul, [(N, 50), (50, W)], (N, W)), target)
    assert made is tried[1]
    (kernel,) = grid_function(made, "k").kernels
    assert kernel.block[0] > 1 and not [op for op in kernel.body.walk() if isinstance(op, memref.AllocOp)]
    with pytest.raises(AccessError):
        tried.clear()
        lowered(prim(matmul, [(70, 50), (50, 90)], (70, 90)), target)


def test_what_may_have_no_elements_is_not_launched_then() -> None:
    empty = dimension("N", 0)
    made = lowered(prim(relu, [(empty, 7)], (empty, 7)), "opencl")
    sequence, sizes = grid_function(made, "k").sequence, sizes_of(made)
    at = {n: sequence.at([size.at({"N": n}) for size in sizes]) for n in (0, 1)}  # type: ignore[attr-defined]
    assert (len(at[0].launches), len(at[1].launches)) == (0, 1)


def test_indices_have_32_bits_where_no_buffer_has_more_elements() -> None:
    (kernel,) = grid_function(lowered(prim(relu, [(N, W)], (N, W)), "opencl"), "k").kernels
    assert kernel.is_large() and not kernel.is_large(most_bytes=128 << 20)
    (kernel,) = grid_function(lowered(prim(relu, [(4, W)], (4, W)), "opencl"), "k").kernels
    assert not kernel.is_large()


def test_a_grid_that_two_dimensions_do_not_take_is_refused() -> None:
    with pytest.raises(CodegenError, match=r"131072 workgroups.*at most 300 x 300"):
        lowered(prim(relu, [(65536, 256)], (65536, 256)), "vulkan -max-workgroups=300")


def test_a_contraction_is_staged_in_local_memory_with_barriers() -> None:
    (kernel,) = grid_function(lowered(prim(matmul, [(256, 64), (64, 256)], (256, 256)), "opencl"), "k").kernels
    operations = [op.name for op in kernel.body.walk()]
    assert operations.count("memref.alloc") == 2 and operations.count("gpu.barrier") == 2


def test_rows_are_one_launch_and_short_ones_two_with_scratch() -> None:
    rows = grid_function(lowered(prim(centred, [(40, 300)], (40, 300)), "opencl"), "k").sequence
    assert len(rows.launches) == 1 and rows.launches[0].grid == (40, 1, 1) and not rows.scratch
    short = grid_function(lowered(prim(centred, [(5000, 3)], (5000, 3)), "opencl"), "k").sequence
    assert len(short.launches) == 2 and short.scratch == (5000 * 4,)
    assert short.launches[0].args == (0, 2) and short.launches[1].args == (0, 1, 2)


def test_on_a_cpu_a_workgroup_is_one_task_on_vectors() -> None:
    function = lowered(prim(matmul, [(512, 512), (512, 512)], (512, 512)), CPU)
    (kernel,) = grid_function(function, "k").kernels
    assert kernel.block == (1, 1, 1)
    assert any(op.name == "vector.load" for op in kernel.body.walk())
    assert not any(isinstance(op, gpu.BarrierOp) for op in kernel.body.walk())


def test_nothing_to_compute_is_no_launch() -> None:
    function = lowered(prim(relu, [(0, 7)], (0, 7)), "opencl")
    assert grid_function(function, "k").sequence.launches == ()
    assert function.attributes["lb.tasks"].value.data == 0  # type: ignore[attr-defined]


@given(st.integers(1, 5000), st.integers(1, 5000), st.integers(1, 64), st.sampled_from([64, 128, 256, 1024]))
@settings(max_examples=50)
def test_tiles_fit_and_cover(m: int, n: int, batch: int, size: int) -> None:
    limits = grid_limits(Target(f"opencl -max-workgroup-size={size}"))
    assert limits is not None
    tiles = choose_tiles(m, n, 512, batch, 4, limits, divisible=True)
    assert tiles is not None and tiles.size <= size
    assert (tiles.m + 1 + tiles.n + 1) * tiles.depth * 4 <= limits.local_bytes


def test_a_block_fits_the_registers() -> None:
    for registers, most in ((4, 4), (8, 8), (64, 64)):
        limits = grid_limits(Target(f"opencl -vector-bits=32 -vector-registers={registers}"))
        assert limits is not None
        tiles = choose_tiles(4096, 4096, 4096, 1, 4, limits, divisible=True)
        assert tiles is not None and tiles.m_block * tiles.n_block == most


def test_long_sums_are_divided_where_tiles_are_few_for_the_device() -> None:
    small, large = (grid_limits(Target(f"opencl -num-cores={cores}")) for cores in (8, 132))
    assert small is not None and large is not None
    layer = (49, 512, 4608, 1, 4)  # the last 3x3 convolution of ResNet-50
    divided = choose_tiles(*layer, large, divisible=True)
    assert divided is not None and divided.splits > 1
    for tiles in (
        choose_tiles(*layer, large, divisible=False),
        choose_tiles(*layer, small, divisible=True),
        choose_tiles(4096, 4096, 4096, 1, 4, large, divisible=True),
    ):
        assert tiles is not None and tiles.splits == 1


@pytest.mark.parametrize(
    ("target", "dtype", "reason"),
    [
        ("opencl", "float32", None),
        ("opencl", "float64", "fp64=0"),
        ("opencl -fp64=1", "float64", None),
        ("vulkan", "int64", "int64=0"),
        ("vulkan", "int8", "small-elements=0"),
        ("vulkan", "bool", "small-elements=0"),
        ("vulkan -small-elements=1", "int8", None),
        ("llvm", "float64", None),
    ],
)
def test_what_a_target_cannot_run(target: str, dtype: str, reason: str | None) -> None:
    def copy(p: PrimBuilder) -> None:
        p.generic("p", [8], [(p.inputs[0], lambda i: (i,))], [(p.outputs[0], lambda i: (i,))], lambda s, x: x)

    found = supports(prim(copy, [(8,)], (8,), dtype), Target(target))
    assert found is None if reason is None else found is not None and reason in found


def test_too_many_buffers_for_one_kernel() -> None:
    def add(p: PrimBuilder) -> None:
        ins = [(b, lambda i: (i,)) for b in p.inputs]
        p.generic("p", [8], ins, [(p.outputs[0], lambda i: (i,))], lambda s, *x: x[0] + x[-1])

    function = prim(add, [(8,)] * 7, (8,))
    found = supports(function, Target("vulkan -max-storage-buffers=4"))
    assert found is not None and "8 buffers" in found and "at most 4" in found
