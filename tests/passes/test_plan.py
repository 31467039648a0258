"""Storage planning and in place reuse: what may share bytes, what may not, and scopes that are too small."""

from __future__ import annotations

import pytest
from graphs import add, double, graph, relu, row_sums
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap

from landbridge.analysis.overwriting import overwritable
from landbridge.errors import PlacementError
from landbridge.ir.graph_builder import GraphBuilder
from landbridge.ir.memory_ops import AllocStorageOp, AllocTensorOp
from landbridge.passes.registry import run_pipeline
from landbridge.targets import Target

SHAPE = (16, 16)
NBYTES = 1024
STEPS = ["dedup", "bufferize", "plan"]


def ladder(g: GraphBuilder, x: SSAValue) -> list[SSAValue]:
    a = relu(g, x)
    b = double(g, a)
    return [row_sums(g, add(g, a, b))]


def storage(module) -> AllocStorageOp:
    (found,) = [op for op in module.main.body.block.ops if isinstance(op, AllocStorageOp)]
    return found


def test_buffers_share_bytes_when_their_lives_do_not_meet():
    module = run_pipeline(graph([(SHAPE, "float32")], ladder), STEPS)
    tensors = [op for op in module.main.body.block.ops if isinstance(op, AllocTensorOp)]
    assert len(tensors) == 3
    assert storage(module).nbytes.value.data == 3 * NBYTES  # a, b and their sum live at the addition
    reused = run_pipeline(graph([(SHAPE, "float32")], ladder), [*STEPS[:2], "inplace", "plan"])
    assert storage(reused).nbytes.value.data == 2 * NBYTES


def test_what_only_one_branch_needs_shares_with_the_other():
    def build(g, flag, x):
        def side(inner):
            return [row_sums(inner, relu(inner, x))]

        return g.branch(flag, side, side)

    module = run_pipeline(graph([((), "bool"), (SHAPE, "float32")], build), STEPS)
    assert storage(module).nbytes.value.data == NBYTES


def test_a_scope_that_is_too_small_is_named():
    module = graph([(SHAPE, "float32")], ladder)
    module.targets = (Target({"kind": "llvm", "memory": [{"scope": "global", "host_access": "read_write",
                                                           "coherent": True, "capacity": 2000}]}),)  # fmt: skip
    with pytest.raises(PlacementError, match=r"scope 'global' of vdevice 'cpu' is too small: .*2000"):
        run_pipeline(module, STEPS)


@pytest.mark.parametrize(
    ("kind", "nbytes"),
    [
        ({"coherent": True}, 64),  # 36 bytes each
        ({"coherent": True, "offset_alignment": 256}, 256),
        ({"coherent": False, "coherence_granule": 512}, 512),
    ],
)
def test_buffers_begin_and_end_where_the_memory_says(kind, nbytes):
    module = graph([((3, 3), "float32")], ladder)
    described = {"scope": "global", "host_access": "read_write", "alignment": 2048} | kind
    module.targets = (Target({"kind": "llvm", "memory": [described]}),)
    module = run_pipeline(module, STEPS)
    offsets = [op.offset.value.data for op in module.main.body.block.ops if isinstance(op, AllocTensorOp)]
    assert sorted(offsets) == [0, nbytes, 2 * nbytes]
    found = storage(module)
    assert found.alignment.value.data == 2048
    assert found.nbytes.value.data == 2 * nbytes + (36 if kind["coherent"] else nbytes)  # a granule is of one tensor


def prim(stages, inputs=(SHAPE, SHAPE), dtypes=("float32", "float32"), out="float32"):
    """The PrimFunc that ``stages(p)`` writes."""

    def build(g, *values):
        return g.call("f", values, [(SHAPE, out)], stages)

    module = graph(list(zip(inputs, dtypes, strict=True)), build)
    (function,) = module.prims().values()
    return function


SAME = AffineMap.identity(2)


@pytest.mark.parametrize(
    ("maps", "expected"),
    [
        ((SAME, SAME), [(0, 0), (1, 0)]),
        ((SAME, lambda i, j: (j, i)), [(0, 0)]),
        ((lambda i, j: (0, j), SAME), [(1, 0)]),
        ((lambda i, j: (j, i), lambda i, j: (i, 0)), []),
    ],
)
def test_an_input_may_be_overwritten_when_it_is_read_where_it_is_written(maps, expected):
    def stages(p):
        ins = list(zip(p.inputs, maps, strict=True))
        p.generic("pp", SHAPE, ins, [(p.outputs[0], SAME)], lambda s, a, b: a + b)

    assert overwritable(prim(stages), 1) == expected


def test_earlier_reads_loads_reductions_and_other_sizes_forbid_it():
    def early(p):
        temp = p.temp(SHAPE, "float32")
        p.generic("pp", SHAPE, [(p.inputs[0], SAME)], [(temp, SAME)], lambda s, a: a * 2.0)
        ins = [(temp, SAME), (p.inputs[0], SAME), (p.inputs[1], SAME)]
        p.generic("pp", SHAPE, ins, [(p.outputs[0], SAME)], lambda s, t, a, b: t + a + b)

    assert overwritable(prim(early), 1) == [(1, 0)]

    def loads(p):
        def body(s, a):
            return a + s.load(p.inputs[0], [s.index(1), s.index(0)], "float32")

        p.generic("pp", SHAPE, [(p.inputs[0], SAME)], [(p.outputs[0], SAME)], body)

    assert overwritable(prim(loads), 1) == []

    def reduction(p):
        ins = [(p.inputs[0], lambda i, j, k: (i, j))]
        outs = [(p.outputs[0], lambda i, j, k: (i, j))]
        p.generic("ppr", [16, 16, 4], ins, outs, lambda s, acc, a: acc + a, init=0.0)

    assert overwritable(prim(reduction), 1) == []

    def widening(p):
        body = lambda s, a: s.cast(a, "float64")  # noqa: E731
        p.generic("pp", SHAPE, [(p.inputs[0], SAME)], [(p.outputs[0], SAME)], body)

    assert overwritable(prim(widening, out="float64"), 1) == []

    def to_integers(p):  # of the same size: a view changes no element type
        body = lambda s, a: s.cast(a, "int32")  # noqa: E731
        p.generic("pp", SHAPE, [(p.inputs[0], SAME)], [(p.outputs[0], SAME)], body)

    assert overwritable(prim(to_integers, out="int32"), 1) == []


def test_where_a_launch_takes_no_space_twice_each_space_holds_one_buffer_at_a_time():
    def steps(g: GraphBuilder, x: SSAValue) -> list[SSAValue]:
        a = relu(g, x)
        return [row_sums(g, double(g, relu(g, double(g, a))))]

    module = graph([(SHAPE, "float32")], steps)
    described = {"scope": "global", "host_access": "none", "coherent": False, "one_tensor_per_space": True}
    module.targets = (Target({"kind": "llvm", "memory": [described]}),)
    module = run_pipeline(module, [*STEPS[:2], "inplace", "plan"])
    ops = list(module.main.body.block.ops)
    assert [op.nbytes.value.data for op in ops if isinstance(op, AllocStorageOp)] == [NBYTES, NBYTES]
    tensors = [op for op in ops if isinstance(op, AllocTensorOp)]
    assert len(tensors) == 4 and {op.offset.value.data for op in tensors} == {0}


@pytest.mark.parametrize(("limit", "message"), [("capacity", "2 spaces of 2048 bytes"), ("max_bytes", "at most 1000")])
def test_spaces_that_do_not_fit_are_named(limit, message):
    module = graph([(SHAPE, "float32")], lambda g, x: [row_sums(g, double(g, relu(g, x)))])
    described = {"scope": "global", "host_access": "none", "coherent": False, "one_tensor_per_space": True, limit: 1000}
    module.targets = (Target({"kind": "llvm", "memory": [described]}),)
    with pytest.raises(PlacementError, match=message):
        run_pipeline(module, STEPS)
