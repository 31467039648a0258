from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import landbridge as lb
from landbridge.errors import BindError, LandbridgeError
from landbridge.executable.instructions import (
    AllocStorage,
    AllocTensor,
    Call,
    HostCall,
    If,
    LoadConstant,
    Loop,
    Slice,
    ToVDevice,
    View,
)
from landbridge.executable.parts import TensorSpec
from landbridge.vm.bind import bind_function
from landbridge.vm.code_image import load_image
from landbridge.vm.device_binding import DeviceBinding
from landbridge.vm.owned_memory import FlatMemory
from landbridge.vm.program import BranchStep, NativeStep
from tests.vm import programs


class FixedMemory:
    """Storages and constants at addresses the test knows."""

    def binding(self, vdevice):
        return DeviceBinding(lb.device("cpu"), lb.device("cpu").memory_kind())

    def storage(self, instruction):
        return FlatMemory(0x10000 * instruction.dst, instruction.nbytes, None)

    def constant(self, instruction):
        return FlatMemory(0x7000_0000, 4096, None)


def bind(executable):
    images = [load_image(module.image) for module in executable.modules]
    return bind_function(executable.main, executable.vdevices, images, FixedMemory())


def test_records_and_arguments():
    executable = programs.two_stages(64)
    program = bind(executable)
    image = load_image(executable.modules[0].image)
    words = program.instantiate()
    base = words.buffer_info()[0]
    assert program.steps == (NativeStep(0, 3),)
    assert list(words[0:2]) == [0, image.address("add")]
    assert list(words[3:6]) == [64, 0, image.address("double")]
    # add's arguments: two inputs, to be bound, and byte 64 of storage 3
    first = (words[2] - base) // 8
    assert list(words[first : first + 3]) == [0, 0, 0x30000 + 64]
    assert program.places[0] == ((first, 0),)
    # the output is written through views at 0 and 128 bytes
    assert [offset for _, offset in program.places[2]] == [0, 128]


@pytest.mark.parametrize(("n", "tasks", "needed"), [(64, 64, False), (1 << 14, 1, False), (1 << 14, 8, True)])
def test_small_work_needs_no_threads(n, tasks, needed):
    executable = programs.add_weights(n, tasks)
    assert bind(executable).needs_threads is needed


def test_each_instance_points_into_itself():
    program = bind(programs.add_weights())
    one, two = program.instantiate(), program.instantiate()
    assert one[2] - one.buffer_info()[0] == two[2] - two.buffer_info()[0]
    assert one[2] != two[2]


def test_branch_records():
    words = bind(programs.branches(8)).instantiate()
    kinds = [words[i] for i in range(0, 6 * 4, 4)]
    # call, branch over (call, jump) to the else call, call
    assert kinds == [0, 1, 0, 2, 0, 0]
    assert words[4 * 1 + 2] == 4 and words[4 * 3 + 2] == 5


def test_branch_with_host_steps_is_a_host_branch():
    n = 4
    program = (
        View(3, 1, 0, (n,), "float32"),
        If(1, (ToVDevice(0, 2, "t"), Call(0, "double", (0, 3), n)), (Call(0, "double", (0, 2), n),)),
        Call(0, "copy", (2, 3), n),
    )
    (branch, native) = bind(programs.executable({"x": (n,), "c": (n,)}, {"y": (n,)}, program)).steps
    assert isinstance(branch, BranchStep)
    assert [type(step).__name__ for step in branch.then] == ["CopyStep", "NativeStep"]
    assert branch.orelse == (NativeStep(4, 1),)
    assert native == NativeStep(8, 1)


def test_copy_between_unequal_tensors():
    executable = programs.executable({"x": (4,)}, {"y": (8,)}, (ToVDevice(0, 1, "t"),))
    with pytest.raises(BindError, match="different shape"):
        bind(executable)


SMALL = st.integers(-2, 6)
SIZES = st.integers(-8, 1 << 64)
SHAPES = st.lists(st.integers(-1, 20), max_size=3).map(tuple)
DTYPES = st.sampled_from(["float32", "bool", "int64", "nonsense"])
SIMPLE = st.one_of(
    st.builds(AllocStorage, SMALL, SIZES, SMALL, st.integers(-1, 300)),
    st.builds(AllocTensor, SMALL, SMALL, SIZES, SHAPES, DTYPES),
    st.builds(LoadConstant, SMALL, st.sampled_from(["w", "v"]), SMALL),
    st.builds(View, SMALL, SMALL, SIZES, SHAPES, DTYPES),
    st.builds(
        Call, SMALL, st.sampled_from(["add", "nothing"]), st.lists(SMALL, max_size=4).map(tuple), st.integers(0, 9)
    ),
    st.builds(ToVDevice, SMALL, SMALL),
    st.builds(HostCall, st.sampled_from(["x", ""]), st.lists(SMALL, max_size=2).map(tuple), st.just({})),
)
BODIES = st.lists(SIMPLE, max_size=2).map(tuple)
LOOPS = st.builds(
    Loop,
    st.integers(0, 1 << 62),
    st.lists(st.builds(Slice, SMALL, SMALL, SIZES, SIZES, SHAPES, DTYPES, st.booleans()), max_size=2).map(tuple),
    BODIES,
    st.lists(SMALL, max_size=1).map(tuple),
    st.lists(SMALL, max_size=1).map(tuple),
)
PROGRAMS = st.lists(SIMPLE | LOOPS | st.builds(If, SMALL, BODIES, BODIES), max_size=6).map(tuple)


@settings(max_examples=300)
@given(program=PROGRAMS)
def test_any_instructions_bind_or_say_why_not(program):
    executable = programs.executable({"x": (4,)}, {"y": (4,)}, program, {"w": np.zeros(4, np.float32)})
    try:
        assert lb.Session(executable, num_threads=1).inputs == (TensorSpec("x", (4,), "float32"),)
    except LandbridgeError as error:
        assert str(error)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ((AllocStorage(2, 64, 0, 141),), "alignment 141"),
        ((AllocStorage(2, (1 << 63) - 1, 0, 64),), "9223372036854775807 bytes"),
        ((AllocStorage(2, 64, 0, 64), AllocTensor(3, 2, 0, (4,), "float33")), "float33"),
        ((View(2, 0, 0, (4,), ""),), "unknown dtype ''"),
        ((Loop(3, (Slice(2, 0, 0, 8, (2,), "float32"),), ()),), "outside register 0"),
        ((Loop(2, (Slice(2, 0, 0, 8, (2,), "float32", True),), ()),), "outside register 0"),
        ((View(2, 0, 0, (1,), "float32"), Loop(2, (), (), (2,))), "reads 8 bytes of register 2"),
        ((View(2, 0, 0, (0,), "bool"), Loop(2, (), (), (), (2,))), "reads 1 bytes of register 2"),
    ],
)
def test_what_no_device_or_dtype_can_be(program, message):
    executable = programs.executable({"x": (4,)}, {"y": (4,)}, program)
    with pytest.raises(BindError, match=message):
        lb.Session(executable, num_threads=1)


def test_a_scope_that_is_not_there():
    executable = programs.add_weights()
    moved = replace(executable, vdevices=(replace(executable.vdevices[0], scope="nowhere"),))
    with pytest.raises(BindError, match="nowhere"):
        lb.Session(moved, num_threads=1)


def test_executable_without_vdevices_or_modules():
    executable = programs.add_weights()
    with pytest.raises(BindError, match="no vdevice"):
        lb.Session(replace(executable, vdevices=()))
    with pytest.raises(BindError, match="module 0 of 0"):
        lb.Session(replace(executable, modules=()))
    with pytest.raises(LandbridgeError, match="main"):
        lb.Session(replace(executable, functions={}))
