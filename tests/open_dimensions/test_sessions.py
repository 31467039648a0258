"""Sessions of open programs: sizes follow what is bound, and what does not fit is said before anything runs."""

from __future__ import annotations

import gc
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import landbridge as lb
from landbridge.errors import (
    ExecutableError,
    InputError,
    SessionBusyError,
    ShapeError,
)
from landbridge.executable.instance import instance
from landbridge.executable.instructions import HostCall
from landbridge.ir.module import IRModule
from landbridge.memory.allocators.naive import NaiveAllocator
from landbridge.memory.allocators.pooled import PooledAllocator
from landbridge.sizes.dim import dimension_of
from landbridge.tensor import Tensor
from landbridge.vm import arena as arenas
from landbridge.vm.builtins import register_builtin
from tests.open_dimensions.models import convolutions, parts
from tests.vm import programs

DIMS = {"N": "1..3", "H": "16..64:8", "W": "8..256:8@64"}


@pytest.fixture(scope="module")
def executable() -> lb.Executable:
    return lb.compile(convolutions(), dims=DIMS)


@pytest.fixture(scope="module")
def peer() -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(convolutions().SerializeToString())


def image(n: int = 1, h: int = 16, w: int = 64) -> np.ndarray:
    return np.random.default_rng(h * w).standard_normal((n, 3, h, w)).astype(np.float32)


def close(found: object, expected: np.ndarray) -> bool:
    return bool(np.abs(np.from_dlpack(found) - expected).max() < 1e-5)


def test_specs_name_what_is_open(executable: lb.Executable) -> None:
    (x,), (y,) = executable.main.inputs, executable.main.outputs
    assert [str(extent) for extent in x.shape] == ["N", "3", "H", "W"]
    assert [str(extent) for extent in y.shape] == ["N", "16", "H/4", "W/4"]
    assert executable.is_open and "W/4" in repr(executable)


def test_runs_follow_what_is_bound(executable: lb.Executable, peer: onnxruntime.InferenceSession) -> None:
    session = lb.Session(executable, num_threads=2)
    for x in (image(), image(2, 64, 256), image(), image(3, 24, 8)):
        session.set_input_zero_copy("x", x)
        session.run()
        (expected,) = peer.run(None, {"x": x})
        result = session.get_output(0)
        assert result.shape == expected.shape and close(result, expected)
        x *= 2  # bound by reference: the next run reads it
        session.run()
        assert close(session.get_output(0), peer.run(None, {"x": x})[0])


def test_nothing_is_copied(executable: lb.Executable) -> None:
    session = lb.Session(executable)
    x, out = image(), np.empty((1, 16, 4, 16), np.float32)
    session.set_input_zero_copy("x", x)
    session.set_output_zero_copy(0, out)
    with lb.no_copies():
        session.run()
    assert np.abs(out).max() > 0


def test_set_input_is_by_value(executable: lb.Executable, peer: onnxruntime.InferenceSession) -> None:
    session, x = lb.Session(executable), image()
    (expected,) = peer.run(None, {"x": x})
    session.set_input("x", x)
    x[...] = 0
    session.run()
    assert close(session.get_output(0), expected)


def activations(session: lb.Session) -> int:
    return sum(memory.activation_bytes for memory in session.planned_memory)


def test_instances_share_the_memory_of_the_largest(executable: lb.Executable) -> None:
    session = lb.Session(executable)
    session.prepare(N=1, H=64, W=[8, 256, 64])
    needed = {}
    for w in (8, 256, 64, 8):
        session.set_input_zero_copy("x", image(1, 64, w))
        session.run()
        needed[w] = activations(session)
    assert needed[8] < needed[64] < needed[256]
    arena = session._executor.instances.program_of("main").arena  # type: ignore[attr-defined]
    assert needed[256] <= arena.nbytes <= 3 * needed[256] + 4096 and arena.generation == 0  # up to three pictures


def test_results_of_all_sizes_come_from_one_pool(executable: lb.Executable) -> None:
    pool = PooledAllocator(NaiveAllocator(lb.device("cpu"), "global"))
    session = lb.Session(executable, memory_cfg={("cpu", "global"): pool})
    pictures = [image(*size) for size in ((3, 64, 256), (2, 64, 200), (3, 40, 256))]

    def visit() -> int:
        for picture in pictures:
            (result,) = session(picture)
            assert result.nbytes > 1 << 16  # smaller ones are numpy's
            del result
        return pool.reserved_bytes

    first = visit()
    assert first and {visit() for _ in range(5)} == {first}
    held = [session(pictures[0])[0] for _ in range(3)]  # what the application keeps is not written again
    retained = [np.array(np.from_dlpack(result)) for result in held]
    session(pictures[1])
    assert len({np.from_dlpack(result).ctypes.data for result in held}) == 3
    assert all(np.array_equal(np.from_dlpack(result), values) for result, values in zip(held, retained, strict=True))
    before = pool.reserved_bytes
    del held
    assert visit() == before


def test_other_sizes_keep_no_results(executable: lb.Executable) -> None:
    """Results of sizes that are not run now hold no memory, whether calls gave them or runs wrote them."""
    session = lb.Session(executable)
    sizes = [(n, 64, w) for n in (1, 2, 3) for w in (200, 224, 248, 256)]

    def living() -> int:
        gc.collect()
        return sum(isinstance(each, Tensor) for each in gc.get_objects())

    session(image(*sizes[0]))
    before = living()
    for size in sizes:
        session(image(*size))
    assert living() == before
    for size in (*sizes, sizes[0]):
        picture = image(*size)
        session.set_input_zero_copy(0, picture)
        session.run()
        (expected,) = session(picture)
        assert np.array_equal(np.asarray(session.get_output(0)), np.asarray(expected))
        del expected
    assert living() <= before + 1  # the result of the last run


def test_memory_without_a_bound_is_reserved_once() -> None:
    session = lb.Session(lb.compile(convolutions(), dims={"N": "1..1", "H": "16..64:8", "W": "8..:8@64"}))
    program = session._executor.instances.program_of("main")  # type: ignore[attr-defined]
    session(image(1, 16, 8))
    shared = program.shared
    for w in (64, 8, 256, 128, 256, 1024):
        session(image(1, 16, w))
    session(image(1, 64, 2048))
    assert program.arena.generation == 0 and program.shared is shared is not None


def test_memory_without_a_bound_grows_with_the_largest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arenas, "_RESERVED", 0)
    session = lb.Session(lb.compile(convolutions(), dims={"N": "1..1", "H": "16..64:8", "W": "8..:8@64"}))
    for w in (8, 64, 8, 256, 128, 256):
        session(image(1, 16, w))
    arena = session._executor.instances.program_of("main").arena  # type: ignore[attr-defined]
    session.set_input_zero_copy("x", image(1, 16, 256))
    session.run()
    assert arena.nbytes == activations(session) and arena.generation == 2
    for w in range(264, 1024, 8):
        session.prepare(H=16, W=w)
    assert arena.generation == 4  # twice as large each time


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((1, 3, 16, 63), r"axis 3 of input 'x' is 63; legal: W, with W in 8\.\.256:8@64"),
        ((4, 3, 16, 64), r"axis 0 of input 'x' is 4; legal: N, with N in 1\.\.3"),
        ((1, 3, 8, 64), r"axis 2 of input 'x' is 8"),
        ((1, 4, 16, 64), r"has shape \(1, 4, 16, 64\); the program takes \(N, 3, H, W\)"),
        ((3, 16, 64), r"the program takes \(N, 3, H, W\)"),
    ],
)
def test_shapes_that_do_not_fit(executable: lb.Executable, shape: tuple[int, ...], message: str) -> None:
    session = lb.Session(executable)
    session.set_input_zero_copy("x", image())
    for use in (session, lambda x: session.set_input_zero_copy("x", x), lambda x: session.set_input("x", x)):
        with pytest.raises(ShapeError, match=message):
            use(np.zeros(shape, np.float32))
    session.run()  # what was bound stays bound


def test_inputs_must_agree() -> None:
    session = lb.Session(lb.compile(parts(), dims={"L": "2..90"}))
    a, b = (np.ones((4, length), np.float32) for length in (5, 6))
    session.set_input_zero_copy("a", a)
    with pytest.raises(InputError, match="'b'"):
        session.run()
    session.set_input_zero_copy("b", b)
    with pytest.raises(ShapeError, match="dimension 'L' is 5 by axis 1 of input 'a' and 6 by axis 1 of input 'b'"):
        session.run()
    session.set_input_zero_copy("b", a)
    session.run()
    assert session.get_output(0).shape == (8, 9)


def test_prepare_says_what_is_legal(executable: lb.Executable) -> None:
    session = lb.Session(executable)
    with pytest.raises(ShapeError, match=r"no dimension 'V'; its open ones: N \(axis 0 of '.*'\), H"):
        session.prepare(V=3)
    with pytest.raises(ShapeError, match="dimension 'W' has no value"):
        session.prepare(N=1, H=16)
    with pytest.raises(ShapeError, match="dimension 'W' is 12"):
        session.prepare(N=1, H=16, W=[8, 12])
    known = lb.Session(lb.compile(parts(), shapes={"a": (4, 5), "b": (4, 5)}))
    with pytest.raises(ShapeError, match="all of its sizes are known"):
        known.prepare(L=5)


def test_memory_at_a_bound_is_known_before_a_run(executable: lb.Executable) -> None:
    session = lb.Session(executable)
    with pytest.raises(InputError, match="no sizes are known yet"):
        _ = session.planned_memory
    session.prepare(N=3, H=64, W=256)
    (most,) = (each.planned_bytes for each in session.planned_memory if each.scope == "global")
    session.prepare(N=1, H=16, W=8)
    (least,) = (each.planned_bytes for each in session.planned_memory if each.scope == "global")
    assert 0 < least < most


def test_files_keep_what_is_open(executable: lb.Executable, tmp_path: Path) -> None:
    executable.save(tmp_path / "net.lbx")
    loaded = lb.load(tmp_path / "net.lbx")
    assert loaded.main == executable.main
    x = image(2, 32, 40)
    (expected,) = lb.Session(executable)(x)
    (found,) = lb.Session(loaded)(x)
    assert np.array_equal(np.from_dlpack(found), np.from_dlpack(expected))


@pytest.mark.parametrize(
    "text", ["W +", "V/2; W in 1..8", "W; W in 8..1", "W" * 70_000, "8", "(W+N)**9; W in 1..9; N in 1..9"]
)
def test_files_with_other_text_are_refused(executable: lb.Executable, text: str) -> None:
    from landbridge.executable.json_form import from_json, to_json
    from landbridge.executable.parts import TensorSpec

    spec = to_json(executable.main.inputs[0])
    spec["shape"][3] = text
    with pytest.raises(ExecutableError):
        from_json(TensorSpec, spec)


@pytest.mark.full
def test_the_plan_prints_and_parses_and_compiles(tmp_path: Path, peer: onnxruntime.InferenceSession) -> None:
    compiled = lb.compile(convolutions(), dims=DIMS, dump=tmp_path)
    assert compiled.is_open
    files = sorted(tmp_path.glob("[0-9]*.mlir"))
    for file in files:
        text = file.read_text()
        assert IRModule.parse(text, (lb.Target("llvm"),)).print() == text
    again = lb.compile(files[-1], constants=compiled.constants)
    x = image(1, 24, 16)
    assert close(lb.Session(again)(x)[0], peer.run(None, {"x": x})[0])


def test_an_instance_is_a_program_of_numbers(executable: lb.Executable) -> None:
    known = instance(executable, {"N": 1, "H": 16, "W": 64})
    assert not known.is_open and known.modules is executable.modules
    assert all(known.constants[name] is array for name, array in executable.constants.items())
    assert close(lb.Session(known)(image())[0], np.from_dlpack(lb.Session(executable)(image())[0]))


def test_a_range_has_sizes() -> None:
    with pytest.raises(ShapeError, match="'W'"):
        lb.compile(convolutions(), dims={"W": "9..3"})


def test_runs_in_the_background(executable: lb.Executable) -> None:
    session = lb.Session(executable)
    session.set_input("x", image())
    session.run_async().wait()
    assert session.get_output(0).shape == (1, 16, 4, 16)


def test_a_run_in_the_background_has_the_session_alone(executable: lb.Executable) -> None:
    """Instances share memory: while one runs no other may."""
    entered, gate = threading.Event(), threading.Event()

    def builtin(args: Sequence[np.ndarray], attributes: object) -> None:
        entered.set()
        assert gate.wait(30)
        args[1][:] = args[0]

    register_builtin("test.open.gate", builtin)
    n = dimension_of("n", lb.Dim(1, 9))
    program = (HostCall("test.open.gate", (0, 1), {}),)
    session = lb.Session(programs.executable({"x": (n,)}, {"y": (n,)}, program))
    session.set_input("x", np.ones(4, np.float32))
    run = session.run_async()
    try:
        assert entered.wait(30)
        other = np.zeros(5, np.float32)
        for use in (
            lambda: session(other),
            lambda: session.set_input("x", other),
            lambda: session.prepare(n=5),
            session.run,
            session.run_async,
            lambda: session.get_output(0),
        ):
            with pytest.raises(SessionBusyError, match="run_async"):
                use()
    finally:
        gate.set()
    run.wait()
    assert np.array_equal(np.from_dlpack(session.get_output(0)), np.ones(4))
    (found,) = session(np.full(5, 2, np.float32))
    assert np.array_equal(np.from_dlpack(found), np.full(5, 2))
