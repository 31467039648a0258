"""Programs compiled for OpenCL, run by Sessions on the application's own arrays."""

from __future__ import annotations

import gc
import mmap
import threading

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import landbridge as lb
from landbridge.device.api import Device
from landbridge.errors import BindError, HostViewError, InputError, KernelBuildError, ZeroCopyError
from landbridge.executable.executable import Executable
from landbridge.memory.allocators.default import default_allocator
from landbridge.memory.allocators.statistics import StatisticsAllocator
from landbridge.targets import Target
from landbridge.vm.trace import trace_run
from tests.memory.import_count import imported_ranges

from .transfers import put, read

SHAPE = (4, 256)
BIAS = np.linspace(-1, 1, 256, dtype=np.float32)


def model(state: bool = False) -> ModelProto:
    """``y = relu(x + b) * 2``; with a state, ``h' = x + h`` and ``y = h' * 2``."""
    values = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPE) for name in ("x", "y", "h", "g")}
    two = numpy_helper.from_array(np.float32(2), "two")
    bias = numpy_helper.from_array(BIAS, "b")
    if state:
        nodes = [helper.make_node("Add", ["x", "h"], ["g"]), helper.make_node("Mul", ["g", "two"], ["y"])]
        graph = helper.make_graph(nodes, "state", [values["x"], values["h"]], [values["y"], values["g"]], [two])
    else:
        nodes = [
            helper.make_node("Add", ["x", "b"], ["s"], name="add"),
            helper.make_node("Relu", ["s"], ["r"], name="relu"),
            helper.make_node("Mul", ["r", "two"], ["y"], name="mul"),
        ]
        graph = helper.make_graph(nodes, "plain", [values["x"]], [values["y"]], [two, bias])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def expected(x: np.ndarray) -> np.ndarray:
    return np.maximum(x + BIAS, 0) * 2


@pytest.fixture(scope="module")
def exe(device: Device) -> Executable:
    return lb.compile(model(), target=Target.from_device(device))


def frame(seed: int, count: int = 1) -> np.ndarray:
    shape = SHAPE if count == 1 else (count, *SHAPE)
    array = np.frombuffer(mmap.mmap(-1, 4 * int(np.prod(shape))), np.float32).reshape(shape)
    array[:] = np.random.default_rng(seed).normal(0, 1, shape)
    return array


@pytest.fixture
def importable(device: Device) -> None:
    if not device.memory_kind().importable:
        pytest.skip(f"{device} keeps a copy of imported memory")


def test_by_value(device: Device, exe: Executable) -> None:
    s = lb.Session(exe, device=device)
    x = frame(1)
    s.set_input("x", x)
    wanted = expected(x)
    x[:] = -1
    s.run()
    assert np.array_equal(read(s.get_output("y")), wanted)
    out = np.empty(SHAPE, np.float32)
    assert s.get_output(0, out=out) is out
    assert np.array_equal(out, wanted)


@pytest.mark.usefixtures("importable")
def test_the_applications_arrays_are_used_in_place(device: Device, exe: Executable) -> None:
    x, y = frame(1), frame(2)
    with lb.ledger() as moves:
        s = lb.Session(exe, device=device)
        s.set_input_zero_copy("x", x)
        s.set_output_zero_copy("y", y)
        for iteration in range(4):
            x[:] = np.random.default_rng(iteration).normal(0, 1, SHAPE)
            s.run()
            assert np.array_equal(y, expected(x))
    assert moves.total_bytes == 0


@pytest.mark.usefixtures("importable")
def test_outputs_of_the_session_are_read_without_a_copy(device: Device, exe: Executable) -> None:
    x = frame(3)
    with lb.no_copies():
        s = lb.Session(exe, device=device)
        s.set_input_zero_copy("x", x)
        s.run()
        with s.get_output("y").host_view("r") as y:
            assert np.array_equal(y, expected(x))
    with pytest.raises(HostViewError, match="host_view"):
        np.asarray(s.get_output("y"))


@pytest.mark.usefixtures("importable")
def test_calls_bind_their_arrays_for_themselves(device: Device, exe: Executable) -> None:
    s = lb.Session(exe, device=device)
    bound, x, y = frame(4), frame(5), frame(6)
    with lb.no_copies():
        s.set_input_zero_copy("x", bound)
        (new,) = s(x)
        assert s(x, out=[y])[0] is y
        s.run()
    assert np.array_equal(read(new), expected(x))
    assert np.array_equal(y, expected(x))
    assert np.array_equal(read(s.get_output(0)), expected(bound))


def test_a_call_with_an_array_of_no_elements(device: Device) -> None:
    relu = helper.make_node("Relu", ["x"], ["y"])
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ("N", 8)) for name in "xy")
    graph = helper.make_model(helper.make_graph([relu], "open", [x], [y]), ir_version=8)
    session = lb.Session(lb.compile(graph, Target.from_device(device)), device=device)
    with lb.no_copies():
        (result,) = session(np.zeros((0, 8), np.float32))
    assert result.shape == (0, 8)


def test_tensors_of_the_device(device: Device, exe: Executable) -> None:
    s = lb.Session(exe, device=device)
    if device.memory_kind().host_access == "none":
        pytest.skip(f"{device} has memory of its own")
    x = lb.empty(SHAPE, dtype="float32", device=device, host_access="read_write")
    y = lb.empty(SHAPE, dtype="float32", device=device, host_access="read_write")
    with lb.no_copies():
        s.set_input_zero_copy("x", x)
        s.set_output_zero_copy("y", y)
        for iteration in range(1, 4):
            with x.host_view("w") as array:
                array[:] = iteration
            s.run()
            assert np.array_equal(read(y), expected(np.full(SHAPE, iteration, np.float32)))


@pytest.mark.usefixtures("importable")
def test_rotating_frames_import_nothing_after_the_first_round(
    device: Device, exe: Executable, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = lb.Session(exe, device=device)
    ring, y = frame(7, 4), frame(8)
    s.set_output_zero_copy("y", y)
    before = imported_ranges(device)
    imports = []
    real = device.api.import_memory
    monkeypatch.setattr(device.api, "import_memory", lambda *args: imports.append(args) or real(*args))
    with lb.no_copies():
        for iteration in range(12):
            s.set_input_zero_copy("x", ring[iteration % 4])
            s.run()
            assert np.array_equal(y, expected(ring[iteration % 4]))
    assert len(imports) == 4
    s.set_input_zero_copy("x", frame(9))
    del ring
    gc.collect()
    assert imported_ranges(device) < before + 4


@pytest.mark.usefixtures("importable")
def test_registered_buffers_are_imported_at_once(
    device: Device, exe: Executable, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = lb.Session(exe, device=device)
    inputs, outputs = [frame(seed) for seed in range(4)], [frame(seed) for seed in range(2)]
    s.register_buffers("x", inputs)
    s.register_buffers("y", outputs)
    monkeypatch.setattr(device.api, "import_memory", lambda *args: pytest.fail("imported again"))
    with lb.no_copies():
        for iteration in range(8):
            s.set_input_zero_copy("x", inputs[iteration % 4])
            s.set_output_zero_copy("y", outputs[iteration % 2])
            s.run()
            assert np.array_equal(outputs[iteration % 2], expected(inputs[iteration % 4]))
    monkeypatch.undo()
    retained = imported_ranges(device)
    del inputs
    gc.collect()
    assert imported_ranges(device) == retained
    with pytest.raises(InputError, match="shape"):
        s.register_buffers("x", [frame(1), np.zeros(3, np.float32)])
    with pytest.raises(InputError, match="no input or output 'z'"):
        s.register_buffers("z", [])
    s.set_input("x", frame(1))
    s.register_buffers("x", [])
    gc.collect()
    assert imported_ranges(device) <= retained - 4


def test_states_swap_without_a_copy(device: Device) -> None:
    s = lb.Session(lb.compile(model(state=True), target=Target.from_device(device)), device=device)
    x = lb.empty(SHAPE, dtype="float32", device=device)
    put(x, 1)
    s.set_input("h", np.zeros(SHAPE, np.float32))
    s.set_input_zero_copy("x", x)
    s.bind_state("g", "h")
    s.run()
    for iteration in range(2, 7):
        with lb.no_copies():
            s.run()
        assert (read(s.get_output("y")) == 2 * iteration).all()


def test_weights_of_the_session(device: Device) -> None:
    exe = lb.compile(model(), target=Target.from_device(device), mutable=("b",))
    one, other = lb.Session(exe, device=device), lb.Session(exe, device=device)
    x = frame(10)
    for s in (one, other):
        s.set_input("x", x)
    one.run()
    one.set_params({"b": np.zeros(256, np.float32)})
    one.run()
    other.run()
    assert np.array_equal(read(one.get_output(0)), np.maximum(x, 0) * 2)
    assert np.array_equal(read(other.get_output(0)), expected(x))


def test_runs_in_the_background(device: Device, exe: Executable) -> None:
    s = lb.Session(exe, device=device)
    x = frame(11)
    wanted = expected(x)
    s.set_input("x", x)
    for _ in range(5):
        pending = s.run_async()
        x[:] = np.nan
        pending.wait(30)
        assert np.array_equal(read(s.get_output(0)), wanted)


def test_sessions_of_many_threads(device: Device, exe: Executable) -> None:
    failures: list[str] = []

    def work(seed: int) -> None:
        try:
            s = lb.Session(exe, device=device)
            for iteration in range(10):
                x = frame(seed * 100 + iteration)
                s.set_input("x", x)
                s.run()
                if not np.array_equal(read(s.get_output(0)), expected(x)):
                    failures.append(f"thread {seed}, iteration {iteration}: another result")
        except Exception as error:
            failures.append(f"thread {seed}: {error!r}")

    threads = [threading.Thread(target=work, args=(seed,), daemon=True) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_saved_program_runs_on_the_device(device: Device, exe: Executable, tmp_path) -> None:
    exe.save(tmp_path / "m.lbx")
    loaded = lb.load(tmp_path / "m.lbx")
    x = frame(12)
    with lb.ledger() as moves:
        s = lb.Session(loaded, device=device)
    s.set_input("x", x)
    s.run()
    assert np.array_equal(read(s.get_output(0)), expected(x))
    if device.memory_kind().importable:
        assert moves.total_bytes == 0  # constants are where the file is mapped


def test_what_does_not_fit_is_reported(device: Device, exe: Executable) -> None:
    with pytest.raises(BindError, match=r'opencl-c, and cpu:0 runs none; .*device="opencl"\)'):
        lb.Session(lb.compile(model(), target=Target.from_device(device), on_mismatch="copy"), device="cpu")
    s = lb.Session(exe, device=device)
    x = lb.empty((4, 512), dtype="float32", device=device)
    part = lb.Tensor(x.storage, "float32", SHAPE, (512, 1), x.byte_offset)
    with pytest.raises(ZeroCopyError, match=r"not (dense|C-contiguous)"):
        s.set_input_zero_copy("x", part)
    with pytest.raises(InputError, match="shape"):
        s.set_input_zero_copy("x", np.zeros((3, 256), np.float32))
    with pytest.raises(InputError, match="would share"):
        both = lb.empty(SHAPE, dtype="float32", device=device)
        s.set_input_zero_copy("x", both)
        s.set_output_zero_copy("y", both)


def test_a_kernel_the_driver_refuses(device: Device, exe: Executable) -> None:
    from dataclasses import replace

    (module,) = exe.modules
    broken = replace(module, image=replace(module.image, code=b"kernel void f( {"))
    with pytest.raises(KernelBuildError, match=r"(?s)driver's log.*1 kernel void f\( \{"):
        lb.Session(replace(exe, modules=(broken,)), device=device)


def test_an_extension_that_is_missing(device: Device, exe: Executable) -> None:
    from dataclasses import replace

    (module,) = exe.modules
    asking = replace(module, image=replace(module.image, requires=("cl_khr_time_travel",)))
    with pytest.raises(BindError, match=r"cl_khr_time_travel, which opencl:0 does not have"):
        lb.Session(replace(exe, modules=(asking,)), device=device)


def test_a_trace_has_each_launch(device: Device, exe: Executable) -> None:
    x = lb.asarray(frame(14), device=device, copy=True)
    events = trace_run(exe, device, {"x": x})
    launches = [launch.kernel for f in exe.modules[0].image.functions.values() for launch in f.launches]
    assert [event.name for event in events] == launches
    assert all(event.category == "kernel" and event.duration_us > 0 and event.tasks > 0 for event in events)


def test_planned_memory_is_all_that_is_taken(device: Device) -> None:
    """Scratch buffers of kernels too: a softmax of rows keeps its rows between launches."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (4, 2048)) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Softmax", ["x"], ["y"], name="s")], "rows", values[:1], values[1:])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    exe = lb.compile(proto, target=Target.from_device(device))
    counted = StatisticsAllocator(default_allocator(device))
    s = lb.Session(exe, device=device, memory_cfg={(str(device), "global"): counted})
    s.set_input("x", np.zeros((4, 2048), np.float32))
    s.run()
    (planned,) = (known for known in s.planned_memory if known.device == str(device))
    scratch = sum(sum(f.scratch) for f in exe.modules[0].image.functions.values())
    assert planned.kernel_bytes >= scratch
    assert planned.allocated_bytes == counted.counters.peak_bytes
