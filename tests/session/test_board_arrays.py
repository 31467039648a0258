"""Sessions on arrays of a board's allocator: nothing is copied, and their barriers stand around each run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import landbridge as lb
from landbridge.device.api import Device, Space
from landbridge.device.import_source import BusAddress, ImportSource
from landbridge.device.protocols import AccessMode
from landbridge.errors import InputError, ZeroCopyError
from landbridge.executable.executable import Executable
from landbridge.executable.instructions import Call
from landbridge.executable.parts import ModuleImage, VDevice
from landbridge.memory.coherence import before_device_access
from landbridge.targets import Target
from landbridge.testing.lazy_instance import LazyBlock
from tests.device.board_array import BoardArray, Dram, PynqArray, SyncedArray
from tests.device.caching_device import CachingDeviceAPI
from tests.device.caching_device import device as caching_device
from tests.vm import programs
from tests.vm.lazy_kernels import IMAGE, LazyKernels, N

NBYTES = 4 * N
HIDDEN = {"scope": "global", "host_access": "none", "coherent": False, "coherence_granule": 64, "offset_alignment": 64}
X = np.arange(N, dtype=np.float32)


class Board(LazyKernels):
    """``sim:lazy``, which reaches ``dram`` by its bus addresses; it has no barriers for that."""

    begin_host_access = None  # type: ignore[assignment]
    end_host_access = None  # type: ignore[assignment]

    def __init__(self, dram: Dram) -> None:
        super().__init__(0)
        self.dram, self.sources = dram, list[ImportSource]()
        self._kinds["shared"] = replace(self._kinds["shared"], coherent=False, coherence_granule=64, importable=True)

    def import_memory(self, index: int, source: ImportSource, access: AccessMode) -> Space:
        if not isinstance(source, BusAddress):
            raise ZeroCopyError("this device takes bus addresses alone")
        self.sources.append(source)
        block = LazyBlock(self._live(index), "shared", 0, 1)
        start = source.address - self.dram.begin
        block.data = self.dram.content[start : start + source.nbytes]
        block.address = source.host_address or 0
        return Space(Device(self, index), "shared", block)

    def release_import(self, space: Space) -> None:
        pass


def on_the_cpu(kernel: str = "double") -> Executable:
    return programs.executable({"x": (N,)}, {"y": (N,)}, (Call(0, kernel, (0, 1), N),))


def on_the_device() -> Executable:
    target = Target({"kind": "llvm", "memory": [HIDDEN]}).to_json()
    exe = programs.executable({"x": (N,)}, {"y": (N,)}, (Call(0, "double", (0, 1), 1),))
    return replace(exe, vdevices=(VDevice("dev", 0, "global"),), modules=(ModuleImage(target, IMAGE),))


@pytest.fixture(params=[PynqArray, SyncedArray])
def kind(request: pytest.FixtureRequest) -> type[BoardArray]:
    return request.param


def names(kind: type[BoardArray]) -> tuple[str, str]:
    return ("flush", "invalidate") if kind is PynqArray else ("sync_to_device", "sync_from_device")


class TestOnTheCPU:
    @pytest.mark.parametrize("how", ["run", "run_async", "call"])
    def test_barriers_stand_around_the_run_and_nothing_is_copied(self, kind: type[BoardArray], how: str) -> None:
        dram, s = Dram(), lb.Session(on_the_cpu(), num_threads=1)
        x, y = (dram.allocate((N,), np.float32, kind=kind) for _ in range(2))
        if how != "call":
            s.set_input_zero_copy("x", x)
            s.set_output_zero_copy("y", y)
        flush, invalidate = names(kind)
        for scale in (1, 2, 3):
            dram.seen(x)[:] = scale * X  # as a sensor's DMA engine does
            dram.calls.clear()
            with lb.ledger() as moves, lb.no_copies():
                if how == "call":
                    s(x, out=[y])
                elif how == "run":
                    s.run()
                else:
                    s.run_async().wait(30)
            assert moves.total_bytes == 0
            assert dram.calls == [(invalidate, 0, NBYTES), (flush, 64, NBYTES)]
            np.testing.assert_array_equal(dram.seen(y), 2 * scale * X)

    def test_input_and_output_in_one_array_keep_their_neighbours(self) -> None:
        dram, s = Dram(), lb.Session(on_the_cpu(), num_threads=1)
        both = dram.allocate((3 * N,), np.float32, kind=PynqArray)
        s.set_input_zero_copy("x", both[:N])
        s.set_output_zero_copy("y", both[N : 2 * N])
        dram.seen(both)[:N], dram.seen(both)[2 * N :] = X, 7
        s.run()
        np.testing.assert_array_equal(dram.seen(both), np.concatenate([X, 2 * X, np.full(N, 7)]))
        assert {call[1:] for call in dram.calls} == {(0, 3 * NBYTES)}, "all of the array is one granule"

    @pytest.mark.filterwarnings("ignore::landbridge.errors.SlowMemoryWarning")
    def test_a_coherent_array_needs_none(self) -> None:
        dram, s = Dram(), lb.Session(on_the_cpu(), num_threads=1)
        x, y = (dram.allocate((N,), np.float32, coherent=True, kind=PynqArray) for _ in range(2))
        dram.seen(x)[:] = X
        s.set_input_zero_copy("x", x)
        s.set_output_zero_copy("y", y)
        s.run()
        np.testing.assert_array_equal(dram.seen(y), 2 * X)
        assert dram.calls == []

    def test_copies_by_value_see_what_the_device_wrote(self) -> None:
        dram, s = Dram(), lb.Session(on_the_cpu(), num_threads=1)
        x, y = (dram.allocate((N,), np.float32, kind=PynqArray) for _ in range(2))
        dram.seen(x)[:] = X
        s.set_input("x", x)
        s.run()
        s.get_output("y", y)
        np.testing.assert_array_equal(dram.seen(y), 2 * X)

    def test_the_array_of_the_call_before_is_left_alone(self) -> None:
        dram, s = Dram(), lb.Session(on_the_cpu(), num_threads=1)
        x, y = (dram.allocate((N,), np.float32, kind=PynqArray) for _ in range(2))
        s(x, out=[y])
        dram.calls.clear()
        (result,) = s(X.copy())
        np.testing.assert_array_equal(np.asarray(result), 2 * X)
        assert dram.calls == []
        both = dram.allocate((2 * N,), np.float32, kind=PynqArray)
        with pytest.raises(InputError, match="would share 32 bytes"):  # found once the output is bound
            s(both[:N], out=[both[8 : N + 8]])
        dram.calls.clear()
        (result,) = s(X.copy())
        np.testing.assert_array_equal(np.asarray(result), 2 * X)
        assert dram.calls == []

    def test_what_numpy_computed_of_one_is_numpys(self) -> None:
        dram, s = Dram(), lb.Session(on_the_cpu(), num_threads=1)
        x = dram.allocate((N,), np.float32, kind=PynqArray)
        computed = x + 1
        assert isinstance(computed, PynqArray) and computed.device_address
        s.set_input_zero_copy("x", computed)
        s.run()
        assert dram.calls == []

    def test_memory_that_a_device_imports_later_gets_its_barriers(self) -> None:
        api, s = CachingDeviceAPI(), lb.Session(on_the_cpu(), num_threads=1)
        x = lb.empty((N,), dtype="float32", alignment=64)
        s.set_input_zero_copy("x", x)
        s.run()
        there = lb.asarray(x, device=caching_device(api), copy=False)
        before_device_access(there.storage, *there.byte_range, writes=True)
        api.write(x.data_address, X.tobytes())
        s.run()
        np.testing.assert_array_equal(np.asarray(s.get_output("y")), 2 * X)


class TestOnADevice:
    def test_the_device_reaches_them_where_they_are(self, kind: type[BoardArray]) -> None:
        dram = Dram()
        api = Board(dram)
        s = lb.Session(on_the_device(), Device(api, 0))
        x, y = (dram.allocate((N,), np.float32, kind=kind) for _ in range(2))
        s.set_input_zero_copy("x", x)
        s.set_output_zero_copy("y", y)
        assert [(s.address, s.nbytes) for s in api.sources if isinstance(s, BusAddress)] == [
            (dram.begin, NBYTES),
            (dram.begin + 64, NBYTES),
        ]
        flush, invalidate = names(kind)
        for scale in (1, 2, 3):
            np.asarray(x)[:] = scale * X
            np.asarray(y)[:] = -1  # in the host's cache, not to be written back over the result
            dram.calls.clear()
            with lb.ledger() as moves, lb.no_copies():
                s.run()
            assert moves.total_bytes == 0
            assert dram.calls == [(flush, 0, NBYTES), (flush, 64, NBYTES), (invalidate, 64, NBYTES)]
            np.testing.assert_array_equal(np.asarray(y), 2 * scale * X)
        assert api.violations == []

    def test_alternating_with_the_cpu(self) -> None:
        """What one writes the other reads, each in place."""
        dram = Dram()
        here = lb.Session(on_the_cpu(), num_threads=1)
        there = lb.Session(on_the_device(), Device(Board(dram), 0))
        x, y, z = (dram.allocate((N,), np.float32, kind=PynqArray) for _ in range(3))
        here.set_input_zero_copy("x", x)
        here.set_output_zero_copy("y", y)
        there.set_input_zero_copy("x", y)
        there.set_output_zero_copy("y", z)
        for scale in (1, 2):
            dram.seen(x)[:] = scale * X
            here.run()
            there.run()
            np.testing.assert_array_equal(np.asarray(z), 4 * scale * X)
