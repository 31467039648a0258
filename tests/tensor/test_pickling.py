"""Tensors by value: pickles of every protocol, buffers outside of them, deep copies, every place a Tensor can be."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import landbridge as lb
from landbridge.dtypes import _DTYPES, numpy_dtype
from landbridge.errors import CopyForbiddenError, InputError, UnknownDeviceError, UseAfterFreeError
from tests.vm import programs

PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)


def equal(tensor: lb.Tensor, array: np.ndarray) -> None:
    """``tensor`` has the elements of ``array`` where it says that they are."""
    found = np.asarray(tensor)
    assert tensor.shape == array.shape and found.dtype == array.dtype
    assert found.tobytes() == array.tobytes()
    if tensor.size:
        assert tensor.data_address == found.ctypes.data


def values(shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
    size = int(np.prod(shape))
    return (np.arange(size) % 7).astype(numpy_dtype(dtype)).reshape(shape)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("dtype", sorted(_DTYPES))
def test_every_dtype(dtype, protocol):
    for shape in ((), (0,), (3, 0, 2), (5, 3)):
        array = values(shape, dtype)
        read = pickle.loads(pickle.dumps(lb.asarray(array, copy=True), protocol))
        equal(read, array)
        assert read.dtype == dtype and not read.readonly


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "cut", [np.s_[2:], np.s_[::2], np.s_[::-1], np.s_[:, 1], np.s_[1:5, ::-2], np.s_[3, 2:4], np.s_[:, :0], np.s_[3, 3]]
)
def test_views_of_any_layout(cut, protocol):
    whole = values((6, 4))
    tensor = lb.asarray(np.asarray(whole[cut]))
    equal(pickle.loads(pickle.dumps(tensor, protocol)), np.array(whole[cut]))
    equal(copy.deepcopy(tensor), np.array(whole[cut]))


def test_a_view_at_an_offset_takes_its_own_bytes_alone():
    whole = lb.asarray(values((1 << 16,)), copy=True)
    part = lb.Tensor(whole.storage, "float32", (4,), None, 400)
    assert len(pickle.dumps(part)) < 1000
    equal(pickle.loads(pickle.dumps(part)), np.asarray(whole)[100:104])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_copies_have_memory_of_their_own(protocol):
    tensor = lb.asarray(values((6,)), copy=True)
    copies = [pickle.loads(pickle.dumps(tensor, protocol)), copy.deepcopy(tensor), copy.deepcopy([tensor])[0]]
    np.asarray(tensor)[:] = 9
    for made in copies:
        equal(made, values((6,)))
        np.asarray(made)[:] = 1
    assert np.asarray(tensor).tolist() == [9] * 6


def test_a_shallow_copy_is_another_view():
    tensor = lb.Tensor(lb.asarray(values((8,)), copy=True).storage, "float32", (2, 2), (4, 2), 4)
    other = copy.copy(tensor)
    assert other.data_address == tensor.data_address and other.strides == (4, 2)
    np.asarray(tensor)[1, 1] = 50
    assert other[1, 1] == 50 and copy.copy(lb.asarray(values((3,)))).shape == (3,)


@pytest.mark.parametrize("made", ["borrowed", "own", "result"])
def test_buffers_outside_of_the_pickle_are_the_tensors_memory(made):
    array = values((1 << 16,))
    if made == "borrowed":
        tensor = lb.asarray(array)
    elif made == "own":
        tensor = lb.asarray(array, copy=True)
    else:
        (tensor,) = lb.Session(programs.add_weights(1 << 16), num_threads=1)(array)
    buffers: list[pickle.PickleBuffer] = []
    with lb.no_copies():
        content = pickle.dumps(tensor, 5, buffer_callback=buffers.append)
        read = pickle.loads(content, buffers=buffers)
    assert len(content) < 500
    assert read.data_address == tensor.data_address and read.readonly == tensor.readonly
    del tensor, array
    buffers.clear()
    assert np.asarray(read).nbytes == 1 << 18  # kept alive by who reads it


def test_a_reader_whose_buffers_are_read_only_gets_a_read_only_tensor():
    tensor = lb.asarray(values((5, 2)), copy=True)
    buffers: list[pickle.PickleBuffer] = []
    content = pickle.dumps(tensor, 5, buffer_callback=buffers.append)
    read = pickle.loads(content, buffers=[bytes(each) for each in buffers])
    equal(read, values((5, 2)))
    assert read.readonly and not np.asarray(read).flags.writeable


@pytest.mark.parametrize("place", [None, "sim:board"])
def test_buffers_that_are_not_aligned_are_copied(place):
    tensor = lb.asarray(values((5,)), device=place, copy=True)
    buffers: list[pickle.PickleBuffer] = []
    content = pickle.dumps(tensor, 5, buffer_callback=buffers.append)
    (raw,) = (buffer.raw() for buffer in buffers)
    backing = np.zeros(40, np.uint8)
    shifted = backing[4 - backing.ctypes.data % 4 + 1 :][:20]
    shifted[:] = raw
    with lb.ledger() as moves:
        read = pickle.loads(content, buffers=[shifted])
    assert "unpickle" in {move.cause for move in moves}
    equal(read.to_device("cpu"), values((5,)))


@pytest.mark.parametrize(("given", "match"), [(b"123", "3 bytes"), (b"1234" * 9, "36 bytes")])
def test_other_buffers_are_refused(given, match):
    content = pickle.dumps(lb.asarray(values((5, 2)), copy=True), 5, buffer_callback=lambda _: None)
    with pytest.raises(InputError, match=match):
        pickle.loads(content, buffers=[given])


def test_the_ledger_has_what_is_copied():
    array = values((6, 4))
    for tensor, protocol, causes in (
        (lb.asarray(array), 5, []),
        (lb.asarray(array), 4, [("pickle", 96)]),
        (lb.asarray(array[:, 1]), 5, [("pickle", 24)]),
        (lb.asarray(array[:, 1]), 4, [("pickle", 24), ("pickle", 24)]),
    ):
        with lb.ledger() as moves:
            pickle.dumps(tensor, protocol)
        assert [(move.cause, move.nbytes) for move in moves] == causes
    with lb.ledger() as moves:
        copy.deepcopy(lb.asarray(array))
    assert [move.cause for move in moves] == ["copy"]
    with lb.no_copies(), pytest.raises(CopyForbiddenError, match="pickle"):
        pickle.dumps(lb.asarray(array), 4)
    with lb.no_copies(), pytest.raises(CopyForbiddenError):
        copy.deepcopy(lb.asarray(array))


def test_a_freed_tensor_is_refused():
    tensor = lb.asarray(values((6,)), copy=True)
    tensor.storage.free()
    for copied in (pickle.dumps, copy.deepcopy):
        with pytest.raises(UseAfterFreeError):
            copied(tensor)


@pytest.mark.parametrize("protocol", [4, 5])
@pytest.mark.parametrize(
    ("device", "scope", "separators"),
    [
        ("sim:board", "global", None), ("sim:lazy", "global", None), ("sim:scratch", "global", None),
        ("sim:scratch", "global.scratch", None), ("sim:scratch", "global.vtcm", [1]),
        ("sim:scratch", "global.pitched", [1]), ("cpu", "global.pinned", None),
    ],
)  # fmt: skip
def test_a_tensor_of_a_device_comes_back_there(device, scope, separators, protocol):
    array = values((6, 4))
    tensor = lb.asarray(array).to_device(device, scope=scope, axis_separators=separators)
    for made in (pickle.loads(pickle.dumps(tensor, protocol)), copy.deepcopy(tensor)):
        assert made.device == tensor.device and made.scope == tensor.scope
        assert made.axis_separators == tensor.axis_separators and made.storage is not tensor.storage
        equal(made.to_device("cpu", scope="global"), array)
    assert copy.copy(tensor).storage is tensor.storage
    equal(copy.copy(tensor).to_device("cpu", scope="global"), array)


def test_a_process_without_the_device_is_reported_the_way_out(tmp_path: Path):
    file = tmp_path / "tensor"
    file.write_bytes(pickle.dumps(lb.asarray(values((6,)), device="sim:board")).replace(b"sim:board", b"sim:bored"))
    with pytest.raises(UnknownDeviceError, match=r"pickle tensor\.to_device\('cpu'\)"):
        pickle.loads(file.read_bytes())


def test_a_large_one():
    array = values((1 << 24,))
    equal(pickle.loads(pickle.dumps(lb.asarray(array), 5)), array)


def test_a_pending_run_is_waited_for():
    n = 1 << 20
    session = lb.Session(programs.add_weights(n), num_threads=1)
    session.set_input("x", np.ones(n, np.float32))
    session.run()
    output = session.get_output(0)
    np.asarray(output)[:] = 0
    run = session.run_async()
    read = pickle.loads(pickle.dumps(output))
    equal(read, np.arange(n, dtype=np.float32) + 1)
    run.wait()


def test_another_process_reads_it_without_a_compiler(tmp_path: Path):
    programs.add_weights(64).save(tmp_path / "add.lbx")
    (tmp_path / "tensor").write_bytes(pickle.dumps(lb.asarray(values((64,)), copy=True)))
    code = (
        "import pickle, sys, numpy as np, landbridge as lb; t = pickle.load(open(sys.argv[1], 'rb')); "
        "y = lb.Session(lb.load(sys.argv[2]), num_threads=1)(t)[0]; print(np.asarray(y).sum()); "
        "assert 'onnx' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "tensor", tmp_path / "add.lbx"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stderr, done.stdout.split()) == (
        "",
        [str(values((64,)).sum() + np.arange(64, dtype=np.float32).sum())],
    )
