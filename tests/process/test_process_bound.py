"""What is of one process alone is neither pickled nor copied, and says the way out; data are."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import numpy as np
import pytest
from onnx import TensorProto, helper

import landbridge as lb
from landbridge import errors
from landbridge.memory.allocators import ArenaAllocator, StatisticsAllocator
from landbridge.memory.allocators.default import default_allocator, named_allocator
from tests.vm import programs
from tests.whole_models.small_models import add

PROGRAM = programs.add_weights(64)


def open_program() -> lb.Executable:
    """``y = -x`` of N elements."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ("N",)) for name in "xy")
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "negative", [x], [y])
    return lb.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))


X = np.ones(64, np.float32)

BOUND: dict[str, tuple[Callable[[], object], str]] = {
    "Session": (lambda: lb.Session(PROGRAM, num_threads=1), "pickle its executable"),
    "Session with open dimensions": (
        lambda: lb.Session(open_program(), num_threads=1),
        "pickle its executable",
    ),
    "Pool": (lambda: lb.Pool(PROGRAM, 1), "make a Pool"),
    "AsyncRun": (lambda: lb.Session(PROGRAM, num_threads=1).run_async, "Session"),
    "Storage": (lambda: lb.empty((4,), dtype="int8").storage, "a Tensor of it"),
    "HostView": (lambda: lb.empty((4,), dtype="int8").host_view(), "pickle or copy its Tensor"),
    "Stream": (lambda: lb.device("sim:lazy").create_stream(), "create a stream there"),
    "Module": (lambda: lb.Module(lb.compile(add())), "make a Module"),
    "the process's allocator": (lambda: default_allocator(lb.device("cpu")), "where it is used"),
    "naive allocator": (lambda: named_allocator(lb.device("cpu"), "global", "naive"), "memory_cfg"),
    "an adaptor": (lambda: StatisticsAllocator(default_allocator(lb.device("cpu"))), "where it is used"),
    "an arena": (lambda: ArenaAllocator(default_allocator(lb.device("cpu")), 64), "where it is used"),
    "inside of others": (lambda: {"sessions": [lb.Session(PROGRAM, num_threads=1)]}, "pickle its executable"),
}  # fmt: skip


@pytest.mark.parametrize("name", BOUND)
def test_refused(name):
    make, way_out = BOUND[name]
    made = make()
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(errors.NotPicklableError, match=way_out):
            pickle.dumps(made, protocol)
    with pytest.raises(errors.NotPicklableError, match=way_out):
        copy.deepcopy(made)
    if (not isinstance(made, dict) and not callable(made)) or isinstance(made, lb.Session):
        with pytest.raises(errors.NotPicklableError, match=way_out):
            copy.copy(made)


def test_the_name_is_that_of_the_public_class():
    """Sessions with a time limit are of a class below it."""
    made = lb.Session(PROGRAM, num_threads=1, time_limit=60)
    assert type(made) is not lb.Session
    with pytest.raises(errors.NotPicklableError, match=r"^a Session belongs to this process"):
        pickle.dumps(made)
    with pytest.raises(errors.NotPicklableError, match=r"^an ArenaAllocator belongs to this process"):
        pickle.dumps(ArenaAllocator(default_allocator(lb.device("cpu")), 64))


def test_a_session_that_was_refused_runs_on():
    session = lb.Session(PROGRAM, num_threads=1)
    with pytest.raises(TypeError):
        pickle.dumps(session)
    assert np.asarray(session(X)[0])[63] == 64


def test_a_device_is_its_own_copy_and_is_pickled_by_name():
    device = lb.device("cpu")
    assert copy.copy(device) is device and copy.deepcopy({"device": device})["device"] is device
    with pytest.raises(errors.NotPicklableError, match=r"str\(device\)"):
        pickle.dumps(device)


DATA: dict[str, Callable[[], object]] = {
    "Target": lambda: lb.Target("llvm"),
    "Dim": lambda: lb.Dim(1, 8),
    "InputSpec": lambda: lb.InputSpec(dtype="uint8"),
    "Limits": lb.Limits,
    "MemoryKind": lambda: lb.device("cpu").memory_kind(),
    "what a Session takes": lambda: lb.Session(PROGRAM, num_threads=1).inputs,
    "what a Session plans": lambda: lb.Session(PROGRAM, num_threads=1).planned_memory,
}


@pytest.mark.parametrize("name", DATA)
def test_data(name):
    made = DATA[name]()
    for copied in (pickle.loads(pickle.dumps(made)), copy.copy(made), copy.deepcopy(made)):
        assert copied == made


def test_a_ledger():
    with lb.ledger() as moves:
        lb.asarray(X, copy=True)
    for copied in (pickle.loads(pickle.dumps(moves)), copy.deepcopy(moves)):
        assert copied.entries == moves.entries and copied.total_bytes == X.nbytes


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("where", ["memory", "file"])
def test_an_executable(where, protocol, tmp_path):
    executable = PROGRAM
    if where == "file":
        PROGRAM.save(tmp_path / "add.lbx")
        executable = lb.load(tmp_path / "add.lbx")
    assert copy.copy(executable) is executable
    for copied in (pickle.loads(pickle.dumps(executable, protocol)), copy.deepcopy(executable)):
        assert all(not constant.flags.writeable for constant in copied.constants.values())
        np.testing.assert_array_equal(np.asarray(lb.Session(copied, num_threads=1)(X)[0]), X + np.arange(64))
        copied.save(tmp_path / "again.lbx")
        assert (tmp_path / "again.lbx").exists()


def test_an_executable_with_open_dimensions():
    session = lb.Session(pickle.loads(pickle.dumps(open_program())), num_threads=1)
    for n in (1, 64):
        assert np.asarray(session(np.ones(n, np.float32))[0]).tolist() == [-1] * n


@pytest.mark.parametrize("name", [name for name, value in vars(errors).items() if isinstance(value, type)])
def test_errors_come_back_from_other_processes(name):
    error = getattr(errors, name)("what, and the way out")
    read = pickle.loads(pickle.dumps(error))
    assert type(read) is type(error) and str(read) == str(error)
