"""Bufferization, in place reuse and planning, checked by running what they give."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from graphs import Build, add, double, graph, mirror, pack, relu, row_sums, unpack
from hypothesis import given, settings
from hypothesis import strategies as st
from native import NativeRun

from landbridge.codegen.llvm import generate
from landbridge.emit import emit
from landbridge.executable.executable import Executable
from landbridge.executable.instructions import Call
from landbridge.ir.module import IRModule
from landbridge.passes.lower import lower_module
from landbridge.passes.registry import run_pipeline

MEMORY = ("place", "assign_targets", "dedup", "bufferize", "inplace", "moves", "dedup", "plan")
WITHOUT_REUSE = tuple(p for p in MEMORY if p != "inplace")


def build(module: IRModule, passes: tuple[str, ...] = MEMORY) -> Executable:
    module = run_pipeline(module, passes)
    module.op.verify()
    assert IRModule.parse(module.print(), module.targets).print() == module.print()
    lowered = lower_module(module)
    return replace(emit(module, lowered), modules=(generate(lowered, module.targets[0]),))


def moved(exe: Executable) -> int:
    return sum(i.moves_bytes for i in exe.main.instructions if isinstance(i, Call))


def planned(exe: Executable) -> int:
    return sum(report.planned_bytes for report in exe.memory)


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_a_chain_needs_no_memory_beside_its_output():
    def chain(g, x):
        return [relu(g, double(g, relu(g, x)))]

    x = floats(3, 40)
    exe = build(graph([((3, 40), "float32")], chain))
    np.testing.assert_array_equal(NativeRun(exe)(x)[0], np.maximum(np.maximum(x, 0) * 2, 0))
    assert planned(exe) == 0 and moved(exe) == 0
    retained = build(graph([((3, 40), "float32")], chain), WITHOUT_REUSE)
    assert planned(retained) == 512 + 480  # two buffers of 480 bytes, alive together, aligned to 64


def test_inputs_are_not_overwritten_and_double_use_is_not_in_place():
    def both(g, x):
        a = relu(g, x)
        b = double(g, a)
        return [add(g, a, b), add(g, b, b)]

    x = floats(5, 7)
    y, z = NativeRun(build(graph([((5, 7), "float32")], both)))(x)
    a = np.maximum(x, 0)
    np.testing.assert_array_equal(y, a + a * 2)
    np.testing.assert_array_equal(z, a * 4)


def test_an_input_constant_or_repeated_output_costs_one_copy_each():
    def same(g, x):
        y = relu(g, x)
        return [x, y, y, g.constant(np.arange(4, dtype=np.float32)), g.reshape(y, [2, 2])]

    x = floats(4)
    exe = build(graph([((4,), "float32")], same))
    outs = NativeRun(exe)(x)
    y = np.maximum(x, 0)
    for out, expected in zip(outs, [x, y, y, np.arange(4), y.reshape(2, 2)], strict=True):
        np.testing.assert_array_equal(out, expected)
    assert moved(exe) == 4 * 16
    names = [i.name for i in exe.main.instructions if isinstance(i, Call) and i.moves_bytes]
    assert names == [f"output 'output_{i}'" for i in (0, 2, 3, 4)]


def test_a_reshaped_result_is_written_straight_into_the_output():
    exe = build(graph([((2, 6), "float32")], lambda g, x: [g.reshape(relu(g, x), [3, 4])]))
    x = floats(2, 6)
    np.testing.assert_array_equal(NativeRun(exe)(x)[0], np.maximum(x, 0).reshape(3, 4))
    assert planned(exe) == 0 and moved(exe) == 0


def test_part_of_a_result_is_copied():
    exe = build(graph([((2, 6), "float32")], lambda g, x: [g.reshape(relu(g, x), [1, 6], offset=6)]))
    x = floats(2, 6)
    np.testing.assert_array_equal(NativeRun(exe)(x)[0], np.maximum(x, 0)[1:])
    assert moved(exe) == 24


def test_concatenation_of_contiguous_parts_moves_nothing():
    def cat(g, x, y):
        inner = g.concat([relu(g, x), double(g, y)], 1)
        return [g.concat([inner, double(g, x)], 1)]

    x, y = floats(1, 3, 4), floats(1, 2, 4, seed=1)
    exe = build(graph([((1, 3, 4), "float32"), ((1, 2, 4), "float32")], cat))
    expected = np.concatenate([np.maximum(x, 0), y * 2, x * 2], 1)
    np.testing.assert_array_equal(NativeRun(exe)(x, y)[0], expected)
    assert moved(exe) == 0 and planned(exe) == 0


def test_concatenation_reads_a_part_that_others_use_too():
    def cat(g, x):
        a = relu(g, x)
        return [double(g, g.concat([a, double(g, a)], 0)), row_sums(g, a)]

    x = floats(2, 5)
    exe = build(graph([((2, 5), "float32")], cat))
    both, sums = NativeRun(exe)(x)
    a = np.maximum(x, 0)
    np.testing.assert_array_equal(both, np.concatenate([a, a * 2]) * 2)
    np.testing.assert_allclose(sums, a.sum(1), rtol=1e-6)
    assert moved(exe) == 0


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_concatenation_of_inputs_and_twice_the_same(axis):
    def cat(g, x):
        y = relu(g, x)
        return [g.concat([x, y, y], axis)]

    x = floats(2, 3, 4)
    exe = build(graph([((2, 3, 4), "float32")], cat))
    y = np.maximum(x, 0)
    np.testing.assert_array_equal(NativeRun(exe)(x)[0], np.concatenate([x, y, y], axis))
    assert moved(exe) == (2 if axis == 0 else 3) * x.nbytes


@pytest.mark.parametrize(("channels", "tiles"), [(32, [16]), (20, [16]), (3, [8])])
def test_pack_and_unpack_become_copies(channels, tiles):
    def there_and_back(g, x):
        packed = pack(g, x, [1], tiles)
        return [unpack(g, double(g, packed), [1], tiles, [2, channels, 3, 5])]

    x = floats(2, channels, 3, 5)
    exe = build(graph([(x.shape, "float32")], there_and_back))
    np.testing.assert_array_equal(NativeRun(exe)(x)[0], x * 2)
    assert moved(exe) > 0


def branching(g, flag, x):
    y = relu(g, x)

    def then(inner):
        return [double(inner, y), x]

    def orelse(inner):
        return [y, add(inner, y, double(inner, x))]

    a, b = g.branch(flag, then, orelse)
    return [add(g, a, y), b]


@pytest.mark.sample(2)
@pytest.mark.parametrize("flag", [True, False])
@pytest.mark.parametrize("passes", [MEMORY, WITHOUT_REUSE])
def test_branches_write_where_the_result_is_wanted(flag, passes):
    x = floats(4, 6)
    exe = build(graph([((), "bool"), ((4, 6), "float32")], branching), passes)
    a, b = NativeRun(exe)(np.array(flag), x)
    y = np.maximum(x, 0)
    np.testing.assert_array_equal(a, (y * 2 if flag else y) + y)
    np.testing.assert_array_equal(b, x if flag else y + x * 2)


def test_a_buffer_that_a_kernel_reads_twice_is_not_overwritten():
    """The kernel may write onto its first operand, which is the second one, too: that it reads elsewhere."""

    def transposed(p):
        ins = [(p.inputs[0], lambda i, j: (i, j)), (p.inputs[1], lambda i, j: (j, i))]
        p.generic("pp", [9, 9], ins, [(p.outputs[0], lambda i, j: (i, j))], lambda s, a, b: a + b)

    def symmetric(g, x):
        a = relu(g, x)
        return g.call("symmetric", [a, a], [((9, 9), "float32")], transposed)

    x = floats(9, 9)
    a = np.maximum(x, 0)
    np.testing.assert_array_equal(NativeRun(build(graph([((9, 9), "float32")], symmetric)))(x)[0], a + a.T)


@pytest.mark.parametrize("flag", [True, False])
def test_what_one_branch_reads_late_is_not_where_it_writes_early(flag):
    """The other branch could write its first result onto ``a``: this one has written there when it reads ``a``."""

    def chosen(g, condition, x):
        a = relu(g, x)
        return g.branch(condition, lambda i: [double(i, x), add(i, a, x)], lambda i: [double(i, a), relu(i, x)])

    x = floats(5, 7)
    first, second = NativeRun(build(graph([((), "bool"), ((5, 7), "float32")], chosen)))(np.array(flag), x)
    a = np.maximum(x, 0)
    np.testing.assert_array_equal(first, x * 2 if flag else a * 2)
    np.testing.assert_array_equal(second, a + x if flag else a)


def test_equal_kernels_are_generated_once():
    exe = build(graph([((3,), "float32")], lambda g, x: [relu(g, x), double(g, x), relu(g, double(g, x))]))
    names = {i.function for i in exe.main.instructions if isinstance(i, Call)}
    assert len(names) == 3  # relu, double, and relu written onto its input


STEPS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 99), st.integers(0, 99)), min_size=1, max_size=9)


@settings(max_examples=12)
@given(steps=STEPS, returned=st.lists(st.integers(0, 99), min_size=1, max_size=3))
def test_random_graphs_give_what_numpy_gives(steps, returned):
    """Buffers of different sizes, views and concatenations, with storage poisoned before the run."""

    def build_graph(g, x):
        values = [x]
        for kind, i, j in steps:
            a, b = values[i % len(values)], values[j % len(values)]
            if kind == 0:
                values.append(relu(g, a))
            elif kind == 1:
                values.append(double(g, a))
            elif kind == 2 and a.type == b.type:
                values.append(add(g, a, b))
            elif kind == 3:
                values.append(g.concat([a, b], 0))
            elif kind == 5:
                values.append(mirror(g, a))
            elif kind == 6:
                values.append(add(g, a, g.reshape(b, [1, 6])))
            else:
                rows = a.type.get_shape()[0]
                values.append(g.reshape(a, [rows - rows // 2, 6], offset=rows // 2 * 6))
        return [values[i % len(values)] for i in returned]

    def reference(x):
        values = [x]
        for kind, i, j in steps:
            a, b = values[i % len(values)], values[j % len(values)]
            if kind == 0:
                values.append(np.maximum(a, 0))
            elif kind == 1:
                values.append(a * 2)
            elif kind == 2 and a.shape == b.shape:
                values.append(a + b)
            elif kind == 3:
                values.append(np.concatenate([a, b]))
            elif kind == 5:
                values.append(a[:, ::-1])
            elif kind == 6:
                values.append(a + b[:1])
            else:
                values.append(a[a.shape[0] // 2 :])
        return [values[i % len(values)] for i in returned]

    x = floats(3, 6)
    made: Build = build_graph
    for out, expected in zip(NativeRun(build(graph([((3, 6), "float32")], made)))(x), reference(x), strict=True):
        np.testing.assert_array_equal(out, expected)
