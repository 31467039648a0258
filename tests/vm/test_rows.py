"""Programs whose tensors lie in rows: a kernel gets row tables, whatever the device made of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import landbridge as lb
from landbridge.codegen.cpu_runtime.runtime_ir import runtime_ir
from landbridge.codegen.link import link_objects
from landbridge.codegen.llvm.compile import compile_ir
from landbridge.codegen.llvm.machine import Machine
from landbridge.device import registry
from landbridge.errors import BindError, OutOfMemoryError
from landbridge.executable.executable import Executable
from landbridge.executable.instructions import (
    AllocStorage,
    AllocTensor,
    Call,
    HostCall,
    Instruction,
    LoadConstant,
    ToVDevice,
    View,
)
from landbridge.executable.parts import CodeImage, VDevice
from landbridge.testing.sim_scratch import SimScratchDeviceAPI
from landbridge.vm.builtins import register_builtin
from tests.vm.programs import executable

register_builtin("test.rows", print)

TABLE, PITCHED, TEXTURE = "global.vtcm", "global.pitched", "global.texture"
SHAPE = (2, 3, 10)

_ADD_ROWS = """
define void @add_rows(ptr %args, i64 %begin, i64 %end) {
entry:
  %b_at = getelementptr ptr, ptr %args, i64 1
  %c_at = getelementptr ptr, ptr %args, i64 2
  %a_rows = load ptr, ptr %args
  %b_rows = load ptr, ptr %b_at
  %c_rows = load ptr, ptr %c_at
  br label %row
row:
  %r = phi i64 [ %begin, %entry ], [ %r_next, %row_end ]
  %ar_at = getelementptr ptr, ptr %a_rows, i64 %r
  %br_at = getelementptr ptr, ptr %b_rows, i64 %r
  %cr_at = getelementptr ptr, ptr %c_rows, i64 %r
  %ar = load ptr, ptr %ar_at
  %br = load ptr, ptr %br_at
  %cr = load ptr, ptr %cr_at
  br label %column
column:
  %i = phi i64 [ 0, %row ], [ %i_next, %column ]
  %x_at = getelementptr float, ptr %ar, i64 %i
  %y_at = getelementptr float, ptr %br, i64 %i
  %z_at = getelementptr float, ptr %cr, i64 %i
  %x = load float, ptr %x_at
  %y = load float, ptr %y_at
  %z = fadd float %x, %y
  store float %z, ptr %z_at
  %i_next = add i64 %i, 1
  %more = icmp slt i64 %i_next, 10
  br i1 %more, label %column, label %row_end
row_end:
  %r_next = add i64 %r, 1
  %rows = icmp slt i64 %r_next, %end
  br i1 %rows, label %row, label %done
done:
  ret void
}
"""


@cache
def image() -> CodeImage:
    """``add_rows``: c = a + b of rows of 10 floats, a task each."""
    machine = Machine("x86_64-unknown-linux-gnu", "x86-64", "")
    linked = link_objects([compile_ir(runtime_ir("x86_64"), machine), compile_ir(_ADD_ROWS, machine)])
    return CodeImage("x86_64", linked.code, linked.symbols, linked.imports, linked.relocations, ("sse2",))


def program(instructions: tuple[Instruction, ...] | None = None, scope: str = TABLE) -> Executable:
    """``y = x + x + w``, all of it in rows of one storage of vdevice ``scratch``, which end before the rows do."""
    if instructions is None:
        instructions = (
            AllocStorage(2, 14 * 48, 1, 64, (14, 12), "float32"),
            AllocTensor(3, 2, 0, SHAPE, "float32", "a", (2,)),
            AllocTensor(4, 2, 7 * 48 + 8, SHAPE, "float32", "b", (2,)),
            LoadConstant(5, "w", 1, (2,)),
            ToVDevice(0, 3, "x_in"),
            Call(0, "add_rows", (3, 5, 4), 6),
            Call(0, "add_rows", (3, 4, 3), 6),
            ToVDevice(3, 1, "y_out"),
        )
    made = executable({"x": SHAPE}, {"y": SHAPE}, instructions, {"w": weights()}, image())
    vdevices = (VDevice("main", 0), VDevice("scratch", 0, scope))
    return replace(made, vdevices=vdevices)


def weights() -> np.ndarray:
    return np.arange(60, dtype=np.float32).reshape(SHAPE)


def session(made: Executable, scratch: str = "sim:scratch") -> lb.Session:
    return lb.Session(made, devices={"main": "cpu", "scratch": scratch})


@pytest.fixture(autouse=True)
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimScratchDeviceAPI]:
    made = SimScratchDeviceAPI(seed=11)
    monkeypatch.setitem(registry._plugins._known, made.name, made)
    monkeypatch.setattr(registry, "_devices", {})
    yield made
    made.check_guards()
    assert not made.violations


@pytest.mark.parametrize("scope", [TABLE, PITCHED])
def test_kernels_work_in_rows(scope: str) -> None:
    run = session(program(scope=scope))
    x = np.random.default_rng(1).random(SHAPE, np.float32)
    for _ in range(2):
        with lb.ledger() as moves:
            (y,) = run(x)
        np.testing.assert_array_equal(np.asarray(y), x + (x + weights()))
        assert [(move.cause, move.nbytes) for move in moves] == [("to_vdevice", 240)] * 2


def test_constants_are_copied_into_rows_once() -> None:
    with lb.ledger() as moves:
        session(program())
    assert [(move.cause, move.nbytes) for move in moves] == [("constants:bind", 240)]


def test_flat_memory_stands_in_for_rows() -> None:
    made = program(scope="global")
    x = np.random.default_rng(2).random(SHAPE, np.float32)
    with lb.ledger() as moves:
        run = session(made, "cpu")
    assert not len(moves), "a constant that can be used where it is was copied"
    np.testing.assert_array_equal(np.asarray(run(x)[0]), x + (x + weights()))


def test_textures_are_out_of_reach_of_kernels() -> None:
    storage = AllocStorage(2, 6 * 40, 1, 64, (6, 10), "float32")
    tensor = AllocTensor(3, 2, 0, SHAPE, "float32", "a", (2,))
    with pytest.raises(BindError, match="has 3 dimensions and a tensor"):
        session(program((storage, tensor), scope=TEXTURE))
    storage = AllocStorage(2, 6 * 32, 1, 64, (6, 2, 4), "float32")
    tensor = AllocTensor(3, 2, 0, (6, 2, 4), "float32", "a", (1, 2))
    with pytest.raises(BindError, match=r"'add_rows' uses tensor 'a' .*cannot use in place"):
        session(program((storage, tensor, Call(0, "add_rows", (3, 3, 3), 6)), scope=TEXTURE))


def test_rows_of_the_host_stand_in_for_a_texture() -> None:
    """With on_mismatch="copy": code cannot reach textures, and the program runs all the same."""
    storage = AllocStorage(2, 12 * 80, 1, 64, (12, 5, 4), "float32")
    parts = [AllocTensor(3 + i, 2, 480 * i, (6, 5, 4), "float32", "ab"[i], (1, 2)) for i in range(2)]
    calls = Call(0, "add_rows", (3, 3, 4), 6)
    steps = (storage, *parts, ToVDevice(0, 3, "x"), ToVDevice(0, 4, "x"), calls, ToVDevice(4, 1, "y"))
    made = executable({"x": (6, 5, 4)}, {"y": (6, 5, 4)}, steps, {}, image())
    vdevices = (VDevice("main", 0), VDevice("scratch", 0, TEXTURE))
    copying = replace(made, vdevices=vdevices, metadata={**made.metadata, "on_mismatch": "copy"})
    x = np.random.default_rng(3).random((6, 5, 4), np.float32)
    (y,) = session(copying)(x)
    expected = x.reshape(6, 20).copy()
    expected[:, :10] *= 2  # what the kernel adds of each row
    np.testing.assert_array_equal(np.asarray(y), expected.reshape(6, 5, 4))


def test_the_file_keeps_rows(tmp_path) -> None:
    made = program()
    made.save(tmp_path / "rows.lbx")
    loaded = lb.load(tmp_path / "rows.lbx")
    assert loaded.main.instructions == made.main.instructions
    x = np.ones(SHAPE, np.float32)
    np.testing.assert_array_equal(np.asarray(session(loaded)(x)[0]), x + (x + weights()))


STORAGE = AllocStorage(2, 14 * 48, 1, 64, (14, 12), "float32")


@pytest.mark.parametrize(
    ("instructions", "subject"),
    [
        ((replace(STORAGE, nbytes=640),), r"640 bytes of float32\[14, 12\]"),
        ((replace(STORAGE, dtype="float31"),), "float31"),
        ((replace(STORAGE, shape=(14, 2, 6)),), "14, 2, 6"),
        ((replace(STORAGE, shape=(1 << 14, 12), nbytes=48 << 14),), "needs 2097152 bytes .* at most 262144"),
        ((replace(STORAGE, shape=(1 << 40, 0), nbytes=0),), "needs 140737488355328 bytes .* at most 262144"),
        ((STORAGE, AllocTensor(3, 2, 0, SHAPE, "float32", "a")), "lies in rows: .* needs axis_separators"),
        ((STORAGE, AllocTensor(3, 2, 0, SHAPE, "float32", "a", (4,))), r"axis_separators \(4,\)"),
        ((STORAGE, AllocTensor(3, 2, 9 * 48, SHAPE, "float32", "a", (2,))), "6 rows of 40 bytes from byte 0 of row 9"),
        ((STORAGE, AllocTensor(3, 2, 12, SHAPE, "float32", "a", (2,))), "6 rows of 40 bytes from byte 12 of row 0"),
        ((STORAGE, AllocTensor(3, 0, 0, SHAPE, "float32", "a", (2,))), "register 0 is not a storage of rows"),
        (
            (STORAGE, AllocTensor(3, 2, 0, SHAPE, "float32", "a", (2,)), View(4, 3, 0, (60,), "float32")),
            "no view of it has another shape",
        ),
        (
            (
                STORAGE,
                AllocTensor(3, 2, 0, SHAPE, "float32", "a", (2,)),
                AllocTensor(4, 3, 0, SHAPE, "float32", "b", (2,)),
            ),
            "register 3 is not a storage of rows",
        ),
        (
            (STORAGE, AllocTensor(3, 2, 0, SHAPE, "float32", "a", (2,)), HostCall("test.rows", (3, 1), {})),
            r"host builtin 'test\.rows' uses tensor 'a', which lies in rows",
        ),
        (
            (
                AllocStorage(2, 14 * 48, 1, 64, (14, 48), "uint8"),
                AllocTensor(3, 2, 1, SHAPE, "float32", "a", (2,)),
                ToVDevice(0, 3),
            ),
            "cannot start at byte 1 of its rows; give a multiple of 4",
        ),
        ((LoadConstant(2, "w", 1, ()),), "constant 'w': .* say which axes make each"),
    ],
)
def test_rows_that_do_not_fit(instructions: tuple[Instruction, ...], subject: str) -> None:
    with pytest.raises(BindError, match=subject):
        session(program(instructions))


EXTENTS = st.integers(0, 9) | st.sampled_from([40, 1 << 20, 1 << 40, (1 << 63) - 1])
SHAPES = st.lists(EXTENTS, max_size=4).map(tuple)
DTYPES = st.sampled_from(["float32", "uint8", "int64", "float16", "bool", "float31", ""])
SEPARATORS = st.lists(st.integers(0, 5), max_size=3).map(tuple)


@settings(max_examples=60)
@given(
    scope=st.sampled_from([TABLE, PITCHED, TEXTURE, "global", "global.scratch"]),
    shape=SHAPES,
    dtype=DTYPES,
    nbytes=st.none() | EXTENTS,
    tensor=st.tuples(EXTENTS, SHAPES, DTYPES, SEPARATORS),
    constant=SEPARATORS,
    last=st.sampled_from(["copy in", "copy out", "call", "view"]),
)
def test_what_a_file_may_say_is_bound_or_refused(scope, shape, dtype, nbytes, tensor, constant, last) -> None:
    itemsize = {"float32": 4, "int64": 8, "float16": 2}.get(dtype, 1)
    size = min(prod(shape) * itemsize if nbytes is None else nbytes, (1 << 63) - 1)
    offset, extents, element, separators = tensor
    steps: list[Instruction] = [
        AllocStorage(2, size, 1, 64, shape, dtype),
        AllocTensor(3, 2, offset, extents, element, "a", separators),
        LoadConstant(4, "w", 1, constant),
    ]
    steps += {
        "copy in": [ToVDevice(0, 3)],
        "copy out": [ToVDevice(4, 1)],
        "call": [Call(0, "add_rows", (3, 4, 3), 0)],
        "view": [View(5, 3, 0, extents, element)],
    }[last]
    with suppress(BindError, OutOfMemoryError):
        session(program(tuple(steps), scope=scope))


def test_inputs_lie_in_flat_memory() -> None:
    made = replace(program(), vdevices=(VDevice("main", 0, TABLE), VDevice("scratch", 0, TABLE)))
    with pytest.raises(BindError, match="inputs and outputs lie in flat memory"):
        lb.Session(made, device="sim:scratch")


def test_rows_without_elements_have_no_table() -> None:
    """However many there are: a file may say so."""
    storage = AllocStorage(2, 0, 1, 64, (1 << 40, 0), "float32")
    tensor = AllocTensor(3, 2, 0, (1 << 40, 0), "float32", "a", (1,))
    lb.Session(program((storage, tensor, Call(0, "add_rows", (3, 3, 3), 0)), scope="global"))


def test_memory_is_given_back(api: SimScratchDeviceAPI) -> None:
    run = session(program())
    assert api.used_bytes(TABLE) == (14 + 6) * 128
    del run
    assert api.used_bytes(TABLE) == 0
