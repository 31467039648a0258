"""Weights bound by reference: set_params(copy=False) on the application's own memory."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper, parser

import landbridge as lb
from landbridge.errors import CopyForbiddenError, HostAccessError, InputError, StorageInUseError, ZeroCopyError
from tests.frontend.models import model, value
from tests.session.test_params import PACKED, check, network, packed_network

RNG = np.random.default_rng(7)


def weights() -> dict[str, np.ndarray]:
    """Weights of ``network``."""
    shapes = {"conv.weight": (20, 3, 3, 3), "conv.bias": (20,), "scale": (1, 20, 1, 1), "head": (20, 7)}
    return {name: RNG.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()}


def packed_weights() -> dict[str, np.ndarray]:
    """Weights of ``packed_network``."""
    return {name: RNG.standard_normal(shape, dtype=np.float32) for name, shape in PACKED.items()}


def scaled(n: int = 16) -> onnx.ModelProto:
    """``y = x * w + b``, whose kernel reads both weights as they are."""
    nodes = [helper.make_node("Mul", ["x", "w"], ["m"]), helper.make_node("Add", ["m", "b"], ["y"])]
    first = {"w": np.ones(n, np.float32), "b": np.zeros(n, np.float32)}
    return model(nodes, [value("x", (3, n))], [value("y", (3, n))], first)


@pytest.fixture(scope="module")
def executable() -> lb.Executable:
    return lb.compile(scaled(), mutable=("w", "b"))


def frame(n: int = 16) -> np.ndarray:
    return RNG.standard_normal((3, n), dtype=np.float32)


def result(session: lb.Session, x: np.ndarray) -> np.ndarray:
    """The result of a call, which a run gives too."""
    called = np.array(np.asarray(session(x)[0]))
    session.set_input("x", x)
    session.run()
    np.testing.assert_array_equal(np.asarray(session.get_output(0)), called)
    return called


def test_runs_read_what_the_application_writes(executable: lb.Executable) -> None:
    session, x = lb.Session(executable), frame()
    w, b = np.full(16, 2, np.float32), np.ones(16, np.float32)
    with lb.no_copies(), lb.ledger() as moves:
        session.set_params({"w": w, "b": b}, copy=False)
    assert not list(moves)
    np.testing.assert_allclose(result(session, x), x * 2 + 1, rtol=1e-6)
    w[:], b[3] = -1, 7
    np.testing.assert_allclose(result(session, x), x * w + b, rtol=1e-6)
    np.testing.assert_array_equal(executable.constants["parameter:w"], 1)  # the Executable's own are as before


@pytest.mark.parametrize("kind", ["array", "tensor", "bytearray", "memoryview", "read-only", "unaligned"])
def test_whatever_has_memory(executable: lb.Executable, kind: str) -> None:
    values = RNG.standard_normal(16, dtype=np.float32)
    given: object = values
    if kind == "tensor":
        given = lb.Tensor.from_numpy_view(values)
    elif kind in ("bytearray", "memoryview"):
        given = bytearray(values.tobytes())
        values = np.frombuffer(given, np.float32)
        given = given if kind == "bytearray" else memoryview(values)
    elif kind == "read-only":
        values.flags.writeable = False
    elif kind == "unaligned":  # a multiple of the element, of nothing else
        whole = np.empty(33, np.float32)
        given = whole[1 + (whole[1:].ctypes.data % 32 == 0) :][:16]
        given[:] = values
        values = given
    session, x = lb.Session(executable), frame()
    with lb.no_copies():
        session.set_params({"w": given}, copy=False)
    np.testing.assert_allclose(result(session, x), x * values, rtol=1e-6)
    shown = session.get_params()["w"]
    assert shown.data_address == values.ctypes.data and shown.readonly == (kind == "read-only")
    if kind != "read-only":
        np.asarray(shown)[:] = 3
        np.testing.assert_allclose(result(session, x), x * 3, rtol=1e-6)
    assert session.get_params()["b"].readonly  # the Executable's


def test_the_memory_lives_as_long_as_it_is_bound(executable: lb.Executable) -> None:
    session, x = lb.Session(executable), frame()

    class Watched(np.ndarray):
        """An array that can be referenced weakly."""

    w = np.full(16, 5, np.float32).view(Watched)
    gone = weakref.ref(w)
    session.set_params({"w": w}, copy=False)
    del w
    gc.collect()
    np.testing.assert_allclose(result(session, x), x * 5, rtol=1e-6)
    session.set_params({"w": np.zeros(16, np.float32)})
    gc.collect()
    assert gone() is None
    owned = lb.empty(16, dtype="float32", device="cpu")
    session.set_params({"w": owned}, copy=False)
    with pytest.raises(StorageInUseError, match="parameter 'w' of Session"):
        owned.storage.free()
    buffer = bytearray(64)
    session.set_params({"w": buffer}, copy=False)
    with pytest.raises(BufferError):
        buffer.append(1)
    del session
    gc.collect()
    owned.storage.free()


def test_a_copy_follows_and_a_reference_again(executable: lb.Executable) -> None:
    session, x = lb.Session(executable), frame()
    first, second = np.full(16, 2, np.float32), np.full(16, 3, np.float32)
    session.set_params({"w": first})
    session.set_params({"w": second}, copy=False)
    np.testing.assert_allclose(result(session, x), x * 3, rtol=1e-6)
    session.set_params({"w": first}, copy=True)
    second[:] = np.nan
    np.testing.assert_allclose(result(session, x), x * 2, rtol=1e-6)
    assert session.get_params()["w"].readonly
    first[:] = np.nan
    np.testing.assert_allclose(result(session, x), x * 2, rtol=1e-6)


def test_a_packed_weight_is_refused_and_changes_nothing() -> None:
    values = packed_weights()
    session = lb.Session(lb.compile(packed_network(values), mutable=tuple(PACKED)))
    x = RNG.standard_normal((1, 16, 10, 10), dtype=np.float32)
    before = np.array(np.asarray(session(x)[0]))
    message = (
        r"parameter 'first', float32\[32, 16, 3, 3\], is read by kernel 'a\+b' as float32\[[\d, ]+\], which kernel "
        r"'pack' makes once for each value, so its own memory cannot be bound; call set_params\(\.\.\., copy=True\), "
        r"which copies it, or compile with unpacked=\('first',\)"
    )
    with pytest.raises(ZeroCopyError, match=message):
        session.set_params(packed_weights(), copy=False)
    np.testing.assert_array_equal(np.asarray(session(x)[0]), before)
    assert all(tensor.readonly for tensor in session.get_params().values())
    later = packed_weights()
    session.set_params(later, copy=True)
    assert not np.array_equal(np.asarray(session(x)[0]), before)


def test_one_that_is_packed_leaves_the_others_alone() -> None:
    first, later = weights(), weights()
    session = lb.Session(lb.compile(network(first), mutable=("conv.weight", "head")))
    x = RNG.standard_normal((1, 3, 12, 12), dtype=np.float32)
    with pytest.raises(ZeroCopyError, match=r"parameter 'conv\.weight'"):
        session.set_params({"head": later["head"], "conv.weight": later["conv.weight"]}, copy=False)
    check(session(x)[0], first, x)
    session.set_params({"head": later["head"]}, copy=False)
    session.set_params({"conv.weight": later["conv.weight"]})
    check(session(x)[0], first | {"head": later["head"], "conv.weight": later["conv.weight"]}, x)


def test_what_does_not_fit_is_refused(executable: lb.Executable) -> None:
    session, x = lb.Session(executable), frame()
    good = np.full(16, 9, np.float32)
    for bad, error, reason in (
        ({"v": good}, InputError, r"no parameter 'v'.*mutable=\('v',\)"),
        ({"b": np.zeros(16)}, InputError, "parameter 'b': dtype float64"),
        ({"b": np.zeros(8, np.float32)}, InputError, r"shape \(8,\), it takes \(16,\)"),
        ({"b": [1.0] * 16}, InputError, "a list cannot be bound by reference"),
        ({"b": np.zeros(32, np.float32)[::2]}, ZeroCopyError, r"parameter 'b'.*copy=True"),
        ({"b": np.zeros(16, ">f4")}, ZeroCopyError, "other order"),
        ({"b": np.frombuffer(bytearray(65), np.uint8)[1:].view(np.float32)}, ZeroCopyError, "not aligned.*copy=True"),
    ):
        with pytest.raises(error, match=reason):
            session.set_params({"w": good, **bad}, copy=False)
    np.testing.assert_array_equal(result(session, x), x)


@pytest.mark.parametrize("copy", [True, False])
def test_values_without_names_are_refused(executable: lb.Executable, copy: bool) -> None:
    with pytest.raises(InputError, match="given as a list; legal: a dict"):
        lb.Session(executable).set_params([np.zeros(4, np.float32)], copy=copy)  # type: ignore[arg-type]


def test_memory_that_a_run_writes_is_no_weight(executable: lb.Executable) -> None:
    session, x = lb.Session(executable), frame()
    both = np.zeros((3, 16), np.float32)
    session.set_params({"w": both[1]}, copy=False)
    with pytest.raises(InputError, match=r"output 'y' would share 64 bytes with parameter 'w'; give each memory"):
        session(x, out=[both])
    with pytest.raises(InputError, match="output 'y' would share 64 bytes with parameter 'w'"):
        session.set_output_zero_copy(0, both)
    other = np.zeros((3, 16), np.float32)
    session.set_output_zero_copy(0, other)
    with pytest.raises(InputError, match="parameter 'b' would share 64 bytes with output 'y'"):
        session.set_params({"b": other[0]}, copy=False)
    session.set_params({"w": np.ones(16, np.float32)})
    session(x, out=[both])
    np.testing.assert_array_equal(both, x)


def test_an_open_view_for_writing_keeps_runs_away(executable: lb.Executable) -> None:
    session, x = lb.Session(executable), frame()
    w = lb.Tensor.from_numpy_view(np.ones(16, np.float32))
    session.set_params({"w": w}, copy=False)
    session.set_input("x", x)
    with w.host_view("w") as array:
        array[:] = 4
        for action in (session.run, lambda: session(x)):
            with pytest.raises(HostAccessError, match="parameter 'w'"):
                action()
    np.testing.assert_allclose(result(session, x), x * 4, rtol=1e-6)


def test_sessions_and_threads_share_it(executable: lb.Executable) -> None:
    w, x = np.ones(16, np.float32), frame()
    sessions = [lb.Session(executable, num_threads=1) for _ in range(3)]
    for session in sessions:
        session.set_params({"w": w}, copy=False)
    for factor in (2, 3):
        w[:] = factor
        with ThreadPoolExecutor(4) as threads:  # one Session too: further instances have the same weights
            found = list(threads.map(lambda n: np.array(sessions[n % 2](x)[0]), range(40)))
        for each in (*found, result(sessions[2], x)):
            np.testing.assert_allclose(each, x * factor, rtol=1e-6)


def test_a_time_limit_changes_nothing_about_it(executable: lb.Executable) -> None:
    session, w, x = lb.Session(executable, time_limit=60), np.full(16, 2, np.float32), frame()
    session.set_params({"w": w}, copy=False)
    w[:] = 6
    np.testing.assert_allclose(np.asarray(session(x)[0]), x * 6, rtol=1e-6)
    assert not session.get_params()["w"].readonly


def open_model() -> onnx.ModelProto:
    """``y = x * w`` for any number of rows, and a product whose weight is packed."""
    made = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[N, 64] x) => (float[N, 64] y, float[N, 64] z) {
            y = Mul(x, w)  z = MatMul(x, packed) }"""
    )
    first = {"w": np.ones(64, np.float32), "packed": np.eye(64, dtype=np.float32)}
    made.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in first.items())
    return made


@pytest.fixture(scope="module")
def open_executable() -> lb.Executable:
    return lb.compile(open_model(), mutable=("w", "packed"))


@pytest.mark.parametrize("before", [False, True])
def test_instances_of_all_sizes_share_it(open_executable: lb.Executable, before: bool) -> None:
    session, w = lb.Session(open_executable), np.full(64, 2, np.float32)
    if before:
        session(frame(64))
    with lb.no_copies():
        session.set_params({"w": w}, copy=False)
    for rows in (1, 5, 3, 1):
        w[:] = rows
        x = RNG.standard_normal((rows, 64), dtype=np.float32)
        np.testing.assert_allclose(np.asarray(session(x)[0]), x * rows, rtol=1e-6)
        session.set_input("x", x)
        session.run()
        np.testing.assert_allclose(np.asarray(session.get_output(0)), x * rows, rtol=1e-6)
    shown = session.get_params()
    assert not shown["w"].readonly and shown["w"].data_address == w.ctypes.data and shown["packed"].readonly


@pytest.mark.parametrize("before", [False, True])
def test_open_sizes_refuse_before_anything_changes(open_executable: lb.Executable, before: bool) -> None:
    session, w = lb.Session(open_executable), np.full(64, 2, np.float32)
    if before:
        session(frame(64))
    with pytest.raises(ZeroCopyError, match=r"parameter 'packed'.*'z'"):
        session.set_params({"w": w, "packed": np.ones((64, 64), np.float32)}, copy=False)
    for copy in (True, False):
        for bad in ({"v": w}, {"w": w[:3]}, {"w": w.astype(np.float64)}):
            with pytest.raises(InputError, match="parameter"):
                session.set_params(bad, copy=copy)
    x = frame(64)
    np.testing.assert_array_equal(np.asarray(session(x)[0]), x)


def test_open_sizes_copy_values_at_once(open_executable: lb.Executable) -> None:
    session, w = lb.Session(open_executable), np.full(64, 2, np.float32)
    with lb.no_copies(), pytest.raises(CopyForbiddenError, match="set_params"):
        session.set_params({"w": w})
    session.set_params({"w": w})
    w[:] = np.nan
    for rows in (2, 4):
        x = RNG.standard_normal((rows, 64), dtype=np.float32)
        np.testing.assert_array_equal(np.asarray(session(x)[0]), x * 2)


def cut_model() -> onnx.ModelProto:
    """Rows that are not zero, whose number data decide, times ``w``."""
    made = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[8] x) => (float[M] y) {
            c = Cast<to = 9>(x)  k = Compress<axis = 0>(x, c)  y = Mul(k, w) }"""
    )
    made.graph.initializer.append(numpy_helper.from_array(np.ones(1, np.float32), "w"))
    return made


def test_pieces_of_a_cut_program_share_it() -> None:
    session, w = lb.Session(lb.compile(cut_model(), mutable=("w",))), np.full(1, 2, np.float32)
    with lb.no_copies():
        session.set_params({"w": w}, copy=False)
    x = np.arange(8, dtype=np.float32)
    for factor in (3, 4):
        w[:] = factor
        np.testing.assert_array_equal(np.asarray(session(x)[0]), x[1:] * factor)
    assert session.get_params()["w"].data_address == w.ctypes.data
    with pytest.raises(InputError, match=r"no parameter .v.; legal: w"):
        session.set_params({"v": w}, copy=False)


@pytest.mark.parametrize("target", ["llvm", "c", "opencl"])
def test_weights_that_stay_unpacked_are_bound_in_place(target: str) -> None:
    first, later = packed_weights(), packed_weights()
    executable = lb.compile(packed_network(first), target, unpacked=tuple(PACKED))
    device = "opencl:0" if target == "opencl" else "cpu"
    session = lb.Session(executable, device)
    given = {
        name: np.asarray(lb.empty(a.shape, dtype="float32", device="cpu", alignment=4096)) for name, a in later.items()
    }
    for name, array in later.items():
        given[name][...] = array
    with lb.no_copies():
        session.set_params(given, copy=False)
    x = RNG.standard_normal((1, 16, 10, 10), dtype=np.float32)
    for _ in range(2):
        reference = onnxruntime.InferenceSession(packed_network(given).SerializeToString())
        wanted = reference.run(None, {"x": x})[0]
        found = np.asarray(session(x)[0].to_device("cpu"))
        np.testing.assert_allclose(found, wanted, atol=1e-4 * np.abs(wanted).max())
        given["head"][...] *= 2
        given["first"][0] = 0
    assert [spec.name for spec in session.params] == list(PACKED)


def test_only_the_named_weights_stay_unpacked() -> None:
    values = packed_weights()
    executable = lb.compile(packed_network(values), mutable=("first", "second"), unpacked=("second",))
    session = lb.Session(executable)
    session.set_params({"second": packed_weights()["second"]}, copy=False)
    with pytest.raises(ZeroCopyError, match=r"compile with unpacked=\('first',\), whose kernels read it as it is"):
        session.set_params({"first": values["first"]}, copy=False)
    with pytest.raises(InputError, match="'nowhere', which is no weight"):
        lb.compile(packed_network(values), unpacked=("nowhere",))
    with pytest.raises(InputError, match="unpacked= takes names of weights"):
        lb.compile(packed_network(values), unpacked="first")


def test_an_unpacked_weight_of_open_sizes() -> None:
    executable = lb.compile(open_model(), unpacked=("w", "packed"))
    session, packed = lb.Session(executable), np.eye(64, dtype=np.float32)
    session.set_params({"packed": packed}, copy=False)
    for rows in (1, 7, 3):
        packed[0, 0] = rows
        x = RNG.standard_normal((rows, 64), dtype=np.float32)
        np.testing.assert_allclose(np.asarray(session(x)[1]), x @ packed, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"time_limit": 60}])
def test_a_pool_shares_it(executable: lb.Executable, options: dict[str, float]) -> None:
    w, x = np.ones(16, np.float32), frame()
    with lb.Pool(executable, 3, **options) as pool:
        with lb.no_copies():
            pool.set_params({"w": w}, copy=False)
        for factor in (2, 3):
            w[:] = factor
            for future in [pool.submit(x) for _ in range(12)]:
                np.testing.assert_allclose(np.asarray(future.result(60)[0]), x * factor, rtol=1e-6)
        assert pool.get_params()["w"].data_address == w.ctypes.data
        running = [pool.submit(x) for _ in range(3)]
        pool.set_params({"b": np.full(16, 5, np.float32)})  # after those, before later ones
        for future, shift in [*((each, 0) for each in running), (pool.submit(x), 5)]:
            np.testing.assert_allclose(np.asarray(future.result(60)[0]), x * 3 + shift, rtol=1e-6, atol=1e-6)
        with pytest.raises(InputError, match="no parameter 'v'"):
            pool.set_params({"w": np.zeros(16, np.float32), "v": w})
        np.testing.assert_allclose(np.asarray(pool.submit(x).result(60)[0]), x * 3 + 5, rtol=1e-6, atol=1e-6)


def test_pools_take_new_weights_while_others_submit(executable: lb.Executable) -> None:
    x = np.ones((3, 16), np.float32)
    with lb.Pool(executable, 2) as pool, ThreadPoolExecutor(3) as threads:
        submitters = [threads.submit(lambda: [pool.submit(x) for _ in range(30)]) for _ in range(2)]
        changer = threads.submit(lambda: [pool.set_params({"b": np.full(16, n, np.float32)}) for n in range(1, 6)])
        changer.result(120)
        for futures in submitters:
            for future in futures.result(120):
                found = np.asarray(future.result(120)[0])
                assert (found == found[0, 0]).all() and found[0, 0] in range(1, 7)
        assert np.asarray(pool.submit(x).result(60)[0])[0, 0] == 6
