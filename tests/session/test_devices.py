"""Sessions over several devices: where tensors may live, what crosses, and what binding refuses."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from onnx import helper

import landbridge as lb
from landbridge.device.api import Device
from landbridge.errors import BindError, DeviceLostError, InputError, StorageInUseError, ZeroCopyError
from landbridge.executable.executable import Executable
from landbridge.executable.instructions import AllocStorage, AllocTensor, Call, If, LoadConstant, ToVDevice, View
from landbridge.executable.parts import ModuleImage, VDevice
from landbridge.memory.allocation import allocate
from landbridge.targets import Target
from landbridge.tensor.copy import copy_tensor
from landbridge.testing.sim_lazy import SimLazyDeviceAPI
from tests.device.queueing_device import QueueingDeviceAPI
from tests.frontend.models import model, value
from tests.vm import programs

N = 16
WEIGHTS = np.arange(N, dtype=np.float32)
#: What a Target says of a device whose memory only the device sees.
HIDDEN = {"scope": "global", "host_access": "none", "coherent": False, "coherence_granule": 64, "offset_alignment": 64}


@pytest.fixture(params=["queueing", "sim:lazy"])
def api(request):
    made = QueueingDeviceAPI() if request.param == "queueing" else SimLazyDeviceAPI(seed=7)
    yield made
    assert not getattr(made, "violations", [])


@pytest.fixture
def dev(api):
    return Device(api, 0)


def with_vdevices(exe: Executable, *vdevices: tuple[str, Target, str], on_mismatch: str = "error") -> Executable:
    modules = tuple(ModuleImage(target.to_json(), exe.modules[0].image) for _, target, _ in vdevices)
    places = tuple(VDevice(name, number, scope) for number, (name, _, scope) in enumerate(vdevices))
    return replace(exe, vdevices=places, modules=modules, metadata={"on_mismatch": on_mismatch})


HOST = ("host", Target("llvm"), "global")
DEV = ("dev", Target({"kind": "llvm", "memory": [HIDDEN]}), "global")


def through_a_device(*vdevices, **options) -> Executable:
    """``y = 2 (2 x)``: computed on vdevice 0, carried to vdevice 1 and back between."""
    program = (
        AllocStorage(2, 4 * N, 0, 64),
        AllocTensor(3, 2, 0, (N,), "float32", "before"),
        AllocStorage(4, 4 * N + 64, 1, 64),
        AllocTensor(5, 4, 64, (N,), "float32", "parked"),
        AllocStorage(6, 4 * N, 0, 64),
        AllocTensor(7, 6, 0, (N,), "float32", "after"),
        Call(0, "double", (0, 3), N),
        ToVDevice(3, 5, "out"),
        Call(0, "double", (3, 3), N),  # overwrites what a late copy would still read
        ToVDevice(5, 7, "back"),
        Call(0, "double", (7, 1), N),
    )
    return with_vdevices(programs.executable({"x": (N,)}, {"y": (N,)}, program), *vdevices, **options)


def on_a_device(*vdevices, **options) -> Executable:
    """``y = x + w`` whose input and output are on vdevice 0 and whose code is on vdevice 1."""
    program = (
        AllocStorage(2, 8 * N, 1, 64),
        AllocTensor(3, 2, 0, (N,), "float32", "inner"),
        AllocTensor(4, 2, 4 * N, (N,), "float32", "sum"),
        LoadConstant(5, "w", 1),
        ToVDevice(0, 3, "in"),
        Call(1, "add", (3, 5, 4), N),
        ToVDevice(4, 1, "out"),
    )
    exe = programs.executable({"x": (N,)}, {"y": (N,)}, program, {"w": WEIGHTS})
    return with_vdevices(exe, *vdevices, **options)


def numbers(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(N, dtype=np.float32)


def host(t: lb.Tensor) -> np.ndarray:
    return np.array(t.to_device("cpu"))


# ---- crossings


def test_data_crosses_to_a_device_and_back(dev):
    s = lb.Session(through_a_device(HOST, DEV), devices={"host": "cpu", "dev": dev}, num_threads=1)
    x = numbers()
    s.set_input_zero_copy("x", x)
    for step in range(4):
        x[:] = numbers(step)
        with lb.ledger() as moves:
            s.run()
        assert np.array_equal(np.asarray(s.get_output(0)), 4 * x)
        assert [(m.cause, m.nbytes, m.source, m.destination) for m in moves] == [
            ("to_vdevice", 4 * N, "cpu:0", str(dev)),
            ("to_vdevice", 4 * N, str(dev), "cpu:0"),
        ]
    (y,) = s(x)
    assert np.array_equal(np.asarray(y), 4 * x)


def test_a_loss_names_the_work_that_the_run_submitted_last():
    api = SimLazyDeviceAPI(seed=7)
    dev = Device(api, 0)
    s = lb.Session(through_a_device(HOST, DEV), devices={"host": "cpu", "dev": dev}, num_threads=1)
    s.set_input("x", numbers())
    s.run()
    before = host(s.get_output(0))
    api.lose(0)
    output = rf"the last work submitted was to_vdevice of {4 * N} bytes of Tensor\(float32\[{N}\]"
    for call in (s.run, s.run, lambda: s(numbers()), lambda: s.run_async().wait(30)):
        with pytest.raises(DeviceLostError, match=output):
            call()
    assert np.array_equal(host(s.get_output(0)), before)  # the host's own
    assert dev.is_lost and not lb.device("cpu").is_lost
    again = lb.Session(through_a_device(HOST, DEV), devices={"host": "cpu", "dev": dev.reopen()}, num_threads=1)
    assert np.array_equal(np.asarray(again(numbers())[0]), 4 * numbers())


def test_names_bind_devices_and_never_their_order(dev):
    for devices in ({"dev": dev}, {"dev": dev, "host": "cpu:0"}):
        s = lb.Session(through_a_device(HOST, DEV), device="cpu", devices=devices, num_threads=1)
        assert np.array_equal(np.asarray(s(numbers())[0]), 4 * numbers())


def test_one_program_on_two_instances_of_a_device(api):
    a, b = Device(api, 0), Device(api, 1)
    sessions = [lb.Session(through_a_device(HOST, DEV), devices={"dev": d}, num_threads=1) for d in (a, b)]
    for seed in range(3):
        for s in sessions:
            assert np.array_equal(np.asarray(s(numbers(seed))[0]), 4 * numbers(seed))


def test_inputs_and_outputs_of_a_device(dev):
    s = lb.Session(on_a_device(DEV, HOST), devices={"host": "cpu", "dev": dev}, num_threads=1)
    s.set_input("x", numbers())
    s.run()
    y = s.get_output(0)
    assert y.device == dev
    assert np.array_equal(host(y), numbers() + WEIGHTS)
    retained = np.zeros(N, np.float32)
    assert s.get_output(0, out=retained) is retained and np.array_equal(retained, numbers() + WEIGHTS)
    x, out = lb.asarray(numbers(1)).to_device(dev), lb.empty((N,), dtype="float32", device=dev)
    s.set_input_zero_copy("x", x)
    s.set_output_zero_copy(0, out)
    with lb.ledger() as moves:
        s.run()
    assert [m.cause for m in moves] == ["to_vdevice"] * 2
    assert np.array_equal(host(out), numbers(1) + WEIGHTS)
    (y,) = s(lb.asarray(numbers(2)).to_device(dev))
    assert np.array_equal(host(y), numbers(2) + WEIGHTS)
    assert s(x, out=[y])[0] is y and np.array_equal(host(y), numbers(1) + WEIGHTS)
    s.run_async().wait()
    assert np.array_equal(host(out), numbers(1) + WEIGHTS)


def test_a_copy_of_an_output_is_there_when_get_output_returns(dev):
    """Whoever else knows the memory need not wait."""
    s = lb.Session(on_a_device(DEV, HOST), devices={"host": "cpu", "dev": dev}, num_threads=1)
    s.set_input("x", numbers())
    s.run()
    retained = lb.empty((N,), dtype="float32", device=dev)
    s.get_output(0, out=retained)
    assert not retained.storage.has_queued
    assert np.array_equal(host(retained), numbers() + WEIGHTS)


def test_by_value_means_the_source_is_free_at_once(dev):
    s = lb.Session(on_a_device(DEV, HOST), devices={"host": "cpu", "dev": dev}, num_threads=1)
    x = numbers()
    s.set_input("x", x)
    x[:] = np.nan
    s.run()
    assert np.array_equal(host(s.get_output(0)), numbers() + WEIGHTS)
    assert np.array_equal(host(s.get_input("x")), numbers())


def test_what_is_not_on_the_device_is_not_bound_by_reference(dev):
    s = lb.Session(on_a_device(DEV, HOST), devices={"host": "cpu", "dev": dev}, num_threads=1)
    s.set_input("x", numbers())
    for given in (numbers(), lb.asarray(numbers())):
        with pytest.raises(ZeroCopyError, match=r"input 'x': .*to_device"):
            s.set_input_zero_copy("x", given)
        with pytest.raises(ZeroCopyError, match="input 'x'"):
            s(given)
        with pytest.raises(ZeroCopyError, match="output 'y'"):
            s.set_output_zero_copy(0, given)
    s.run()
    assert np.array_equal(host(s.get_output(0)), numbers() + WEIGHTS)


def test_constants_of_a_device_are_copied_once_at_bind(dev):
    program = (
        LoadConstant(2, "w", 1),
        AllocStorage(3, 4 * N, 0, 64),
        View(4, 3, 0, (N,), "float32"),
        View(5, 2, 0, (N,), "float32"),
        ToVDevice(5, 4, "weights"),
        Call(0, "add", (0, 4, 1), N),
    )
    exe = with_vdevices(programs.executable({"x": (N,)}, {"y": (N,)}, program, {"w": WEIGHTS}), HOST, DEV)
    with lb.ledger() as moves:
        s = lb.Session(exe, devices={"dev": dev}, num_threads=1)
    assert [(m.cause, m.nbytes) for m in moves] == [("constants:bind", 4 * N)]
    assert np.array_equal(np.asarray(s(numbers())[0]), numbers() + WEIGHTS)


def test_memory_of_a_device_that_the_host_shares_is_used_in_place():
    api = SimLazyDeviceAPI(seed=3)
    shared = ("dev", Target({"kind": "llvm", "memory": [HOST_FACTS | {"scope": "shared", "offset_alignment": 64}]}))
    exe = through_a_device((*shared, "shared"), ("other", DEV[1], "global"))
    s = lb.Session(exe, devices={"dev": Device(api, 0), "other": Device(api, 0)}, num_threads=1)
    x = lb.empty((N,), dtype="float32", device=Device(api, 0), scope="shared")
    with x.host_view("w") as view:
        view[:] = numbers()
    for give in (x, numbers()):
        with lb.ledger() as moves:
            (y,) = s(give)
        assert [m.cause for m in moves] == ["to_vdevice"] * 2
        assert np.array_equal(host(y), 4 * numbers())
    assert not api.violations


def test_a_run_waits_for_copies_that_are_queued_on_its_memory():
    api = SimLazyDeviceAPI(seed=5)
    dev = Device(api, 0)
    s = lb.Session(programs.add_weights(N), num_threads=1)
    hidden, x = lb.asarray(numbers(1)).to_device(dev), lb.empty((N,), dtype="float32")
    s.set_input_zero_copy("x", x)
    for step in range(3):
        copy_tensor(x, hidden, cause="test")
        s.run()
        y = s.get_output(0)
        assert np.array_equal(np.asarray(y), numbers(1) + WEIGHTS), step
        retained = y.to_device(dev)  # reads the output later than the next run writes it
        s.set_input("x", numbers(2))
        s.run()
        assert np.array_equal(host(retained), numbers(1) + WEIGHTS)
        s.set_input_zero_copy("x", x)
    assert not api.violations


def network():
    """Two layers whose nodes are called ``first``, ``act`` and ``second``."""
    w1, w2 = np.random.default_rng(1).standard_normal((2, N, N), dtype=np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["a"], name="first"),
        helper.make_node("Relu", ["a"], ["b"], name="act"),
        helper.make_node("MatMul", ["b", "w2"], ["y"], name="second"),
    ]
    proto = model(nodes, [value("x", (4, N))], [value("y", (4, N))], {"w1": w1, "w2": w2})
    return proto, lambda x: np.maximum(x @ w1, 0) @ w2


def test_compiled_for_a_device_that_holds_data_and_a_host_that_computes(dev):
    proto, expected = network()
    hidden = Target({"kind": "llvm", "memory": [HIDDEN]})
    exe = lb.compile(proto, {"npu": hidden, "host": "llvm"}, place={"*": "host"}, mutable=("w2",))
    s = lb.Session(exe, devices={"npu": dev, "host": "cpu"}, num_threads=1)
    for seed in range(3):
        x = np.random.default_rng(seed).standard_normal((4, N), dtype=np.float32)
        with lb.ledger() as moves:
            (y,) = s(lb.asarray(x).to_device(dev))
        assert y.device == dev
        np.testing.assert_allclose(host(y), expected(x), rtol=1e-4, atol=1e-4)
        assert [m.cause for m in moves] == ["to_device", *["to_vdevice"] * (len(moves) - 1)]
    s.set_params({"w2": np.zeros((N, N), np.float32)})
    s.set_input("x", x)
    s.run()
    assert not host(s.get_output(0)).any()


def test_compiled_for_a_node_in_the_middle_on_another_device():
    proto, expected = network()
    api = SimLazyDeviceAPI(seed=11)
    exe = lb.compile(proto, {"host": "llvm", "other": "llvm"}, place={"act": "other"})
    x = np.random.default_rng(3).standard_normal((4, N), dtype=np.float32)
    for devices in ({"other": "cpu:0"}, {"other": device_with({"offset_alignment": 1})}):
        s = lb.Session(exe, devices=devices, num_threads=1)
        for _ in range(2):
            np.testing.assert_allclose(np.asarray(s(x)[0]), expected(x), rtol=1e-4, atol=1e-4)
    with pytest.raises(BindError, match=r"(tensor|crossing) '.*host_access is 'none'"):
        lb.Session(exe, devices={"other": Device(api, 0)}, num_threads=1)
    copying = lb.compile(proto, {"host": "llvm", "other": "llvm"}, place={"act": "other"}, on_mismatch="copy")
    s = lb.Session(copying, devices={"other": Device(api, 0)}, num_threads=1)
    np.testing.assert_allclose(np.asarray(s(x)[0]), expected(x), rtol=1e-4, atol=1e-4)


# ---- what binding checks

HOST_FACTS = {"scope": "global", "host_access": "read_write", "coherent": True}


def bind(exe, dev):
    return lb.Session(exe, devices={"host": "cpu", "dev": dev}, num_threads=1)


def test_memory_that_is_not_what_the_target_reported(dev):
    lied = ("dev", Target("llvm"), "global")
    with pytest.raises(BindError, match=r"tensor 'parked': memory 'global' of .* coherent is False, the target states"):
        bind(through_a_device(HOST, lied), dev)
    with pytest.raises(BindError, match=r"tensor 'x'.*host_access is 'none', the target states.*on_mismatch"):
        bind(on_a_device(lied, HOST), dev)


@pytest.mark.parametrize(
    ("declared", "found", "reason"),
    [
        ({"pinned": True}, {}, "pinned is False"),
        ({"physically_contiguous": True}, {}, "physically_contiguous is None"),
        ({"physically_contiguous": True}, {"physically_contiguous": False}, "physically_contiguous is False"),
        ({}, {"offset_alignment": 128}, "offset_alignment is 128, the target states 1"),
        ({}, {"ndim": 2}, "ndim is 2"),
        ({"max_bytes": 4096}, {"max_bytes": 2048}, "max_bytes is 2048, the target states 4096"),
        ({"capacity": 1 << 20}, {"capacity": 1 << 19}, "capacity is"),
        ({"max_binding_bytes": 1 << 20}, {"max_binding_bytes": 64}, "max_binding_bytes"),
        ({"coherent": False, "coherence_granule": 64}, {"coherent": False, "coherence_granule": 128}, "granule is 128"),
        ({"coherent": True}, {"coherent": False}, "coherent is False"),
        ({}, {"host_access": "read"}, "host_access is 'read'"),
    ],
)
def test_each_fact_is_checked(declared, found, reason):
    target = Target({"kind": "llvm", "memory": [HOST_FACTS | declared]})
    exe = through_a_device(HOST, ("dev", target, "global"))
    with pytest.raises(BindError, match=f"tensor 'parked'.*{reason}"):
        bind(exe, device_with(found))


def test_more_than_was_promised_is_no_difference():
    target = Target({"kind": "llvm", "memory": [HIDDEN | {"max_bytes": 4096}]})
    exe = through_a_device(HOST, ("dev", target, "global"))
    s = bind(exe, device_with({"max_bytes": 1 << 20, "pinned": True, "offset_alignment": 1}))
    assert np.array_equal(np.asarray(s(numbers())[0]), 4 * numbers())


class Granting(SimLazyDeviceAPI):
    """A device whose shared memory is ``global``, with the facts a test wants."""

    facts: dict = {}  # noqa: RUF012

    def memory_kinds(self, index):
        shared = super().memory_kinds(index)["shared"]
        wanted = {"max_bytes": None, "capacity": None, "offset_alignment": 1} | self.facts
        kind = replace(shared, scope="global", **wanted)
        return {"global": kind, "shared": replace(kind, scope="shared")}

    def alloc_data_space(self, index, nbytes, alignment, scope, type_hint):
        return super().alloc_data_space(index, nbytes, alignment, "shared", type_hint)


def device_with(facts) -> Device:
    api = Granting(seed=0)
    api.facts = facts
    return Device(api, 0)


def test_a_scope_and_a_size_the_device_does_not_have(dev):
    with pytest.raises(BindError, match=r"tensor 'parked': .*no memory scope 'vtcm'.*legal: global, shared"):
        bind(through_a_device(HOST, ("dev", Target("llvm"), "vtcm"), on_mismatch="copy"), dev)
    with pytest.raises(BindError, match=r"tensor 'parked': the program needs 128 bytes of .* at most 100"):
        bind(through_a_device(HOST, DEV, on_mismatch="copy"), device_with({"max_bytes": 100}))
    with pytest.raises(BindError, match=r"at most 100"):
        bind(through_a_device(HOST, DEV, on_mismatch="copy"), device_with({"capacity": 100}))


def test_code_on_memory_that_only_the_device_sees(dev):
    program = (
        AllocStorage(2, 4 * N, 1, 64),
        AllocTensor(3, 2, 0, (N,), "float32", "inner"),
        Call(0, "double", (0, 3), N, "twice"),
        Call(0, "double", (3, 1), N),
    )
    exe = programs.executable({"x": (N,)}, {"y": (N,)}, program)
    with pytest.raises(BindError, match=r"call 'twice' uses tensor 'inner' in memory 'global' of .*on_mismatch"):
        bind(with_vdevices(exe, HOST, DEV), dev)
    s = bind(with_vdevices(exe, HOST, DEV, on_mismatch="copy"), dev)
    assert np.array_equal(np.asarray(s(numbers())[0]), 4 * numbers())


def test_where_copies_are_allowed_the_ledger_shows_them(dev):
    """``y = x + w`` compiled for memory it may use in place, bound to memory it may not."""
    program = (LoadConstant(2, "w", 0), Call(0, "add", (0, 2, 1), N))
    exe = programs.executable({"x": (N,)}, {"y": (N,)}, program, {"w": WEIGHTS})
    lied = ("dev", Target("llvm"), "global")
    with pytest.raises(BindError, match="tensor 'x'"):
        lb.Session(with_vdevices(exe, lied), device=dev, num_threads=1)
    s = lb.Session(with_vdevices(exe, lied, on_mismatch="copy"), device=dev, num_threads=1)
    x, y = lb.asarray(numbers()).to_device(dev), lb.empty((N,), dtype="float32", device=dev)
    s.set_input_zero_copy("x", x)
    s.set_output_zero_copy(0, y)
    for _ in range(2):
        with lb.ledger() as moves:
            s.run()
        expected = [("on_mismatch", 4 * N, str(dev), "cpu:0"), ("on_mismatch", 4 * N, "cpu:0", str(dev))]
        assert [(m.cause, m.nbytes, m.source, m.destination) for m in moves] == expected
    assert np.array_equal(host(y), numbers() + WEIGHTS)
    for tensor in (x, y):
        with pytest.raises(StorageInUseError, match="of Session"):
            tensor.storage.free()
    other = lb.asarray(numbers(1)).to_device(dev)
    with lb.ledger() as moves:
        assert s(other, out=[y])[0] is y
        (z,) = s(other)
    assert [m.cause for m in moves] == ["on_mismatch"] * 3
    assert np.array_equal(host(y), numbers(1) + WEIGHTS) and np.array_equal(host(z), numbers(1) + WEIGHTS)
    with pytest.raises(InputError):
        s(other, out=[lb.empty((N + 1,), dtype="float32", device=dev)])
    with lb.ledger() as moves:  # what that call would have copied is forgotten
        s(numbers(2))
    assert len(moves) == 0
    with lb.ledger() as moves:  # memory of the host needs none of that
        s.set_input_zero_copy("x", numbers(2))
        s.set_output_zero_copy(0, retained := np.zeros(N, np.float32))
        s.run()
    assert len(moves) == 0 and np.array_equal(retained, numbers(2) + WEIGHTS)
    s.set_input("x", other)
    s.run()
    assert np.array_equal(retained, numbers(1) + WEIGHTS)


def test_a_target_that_is_no_json():
    exe = through_a_device(HOST, HOST)
    broken = tuple(ModuleImage("llvm", m.image) for m in exe.modules)
    with pytest.raises(BindError, match="no JSON"):
        lb.Session(replace(exe, modules=broken), num_threads=1)
    assert json.loads(exe.modules[0].target)["kind"] == "llvm"


# ---- the ledger in branches


@pytest.mark.parametrize("c", [1.0, -1.0])
@pytest.mark.parametrize("on_host", [False, True])
def test_moves_of_a_branch_count_only_when_it_is_taken(c, on_host):
    def copy(dst, name):
        return Call(0, "copy", (0, dst), N, name, 4 * N)

    aside = (AllocStorage(6, 4 * N, 0, 64), View(7, 6, 0, (N,), "float32"), ToVDevice(0, 7, "aside")) if on_host else ()
    program = (
        AllocStorage(4, 64, 0, 64),
        AllocTensor(5, 4, 0, (1,), "bool"),
        copy(3, "first"),
        Call(0, "is_positive", (1, 5), 1),
        If(5, (copy(2, "then"), *aside), (If(5, (copy(2, "never"),), (copy(2, "else"), copy(2, "again"))),)),
        copy(3, "last"),
    )
    s = lb.Session(programs.executable({"x": (N,), "c": (1,)}, {"y": (N,), "z": (N,)}, program), num_threads=1)
    with lb.ledger() as moves:
        y, z = s(numbers(), np.array([c], np.float32))
    inner = ["then"] if c > 0 else ["else", "again"]
    assert [m.tensor for m in moves if m.cause == "kernel:reorder"] == ["first", *inner, "last"]
    assert moves.kernel_bytes == 4 * N * (2 + len(inner))
    assert all(np.array_equal(np.asarray(t), numbers()) for t in (y, z))
    s(numbers(), np.array([c], np.float32))


# ---- who holds memory


def test_borrowed_storages_are_not_freed_while_they_are_bound():
    s = lb.Session(programs.add_weights(N), num_threads=1)
    x, y = (lb.Tensor(allocate(lb.device("cpu"), 4 * N), "float32", (N,)) for _ in range(2))
    s.set_input_zero_copy("x", x)
    s.set_output_zero_copy(0, y)
    for tensor, name in ((x, "input 'x'"), (y, "output 'y'")):
        with pytest.raises(StorageInUseError, match=rf"{name} of Session\(x -> y\)"):
            tensor.storage.free()
    s.run()
    s.set_input_zero_copy("x", numbers())
    s.set_output_zero_copy(0, np.zeros(N, np.float32))
    x.storage.free()
    y.storage.free()
    s.run()


def test_the_sessions_own_memory_is_not_freed_while_it_lives():
    s = lb.Session(programs.add_weights(N), num_threads=1)
    s.set_input("x", numbers())
    s.run()
    x, y = s.get_input("x"), s.get_output(0)
    for tensor in (x, y):
        with pytest.raises(StorageInUseError, match="of Session"):
            tensor.storage.free()
    del s
    x.storage.free()


def test_results_of_a_call_are_the_callers():
    s = lb.Session(programs.add_weights(1 << 15), num_threads=1)
    x = lb.empty((1 << 15,), dtype="float32")
    (y,) = s(x)
    y.storage.free()
    x.storage.free()
