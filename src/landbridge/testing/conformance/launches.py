"""Tests of modules and launches."""

from __future__ import annotations

import ctypes
from threading import Barrier, Thread

from landbridge.device.api import Region, Space
from landbridge.device.protocols import DeviceModules, ModuleFormats, Streams
from landbridge.errors import DeviceError, InputError, KernelBuildError
from landbridge.testing.conformance.base import expect, expect_raises, pattern
from landbridge.testing.conformance.kernels import NBYTES, KernelCase, SuiteKernel, float32_bytes, minus

_ROUNDS = 8  # repeated, as a wrong order may be right by chance
_CHAIN = 6
_THREADS = 4


class LaunchConformance(KernelCase):
    """Tests ``load_module`` and ``launch``."""

    def test_module_formats(self) -> None:
        """module_formats(index): the names that code generators give, among them that of the device's own."""
        names = self.ability(ModuleFormats).module_formats(self.device.index)
        expect(
            not isinstance(names, str) and all(type(name) is str and bool(name) for name in names),
            f"module_formats returned {names!r}, not names",
        )
        again = self.ability(ModuleFormats).module_formats(self.device.index)
        expect(list(names) == list(again), f"module_formats returned {names!r}, and then {again!r}")
        created = self.image().format
        expect(created in names, f"module_formats says {names!r}, and the code generator makes {created!r}")

    def test_load_module_of_another_format(self) -> None:
        """load_module raises InputError for a format that the device does not load."""
        modules = self.ability(DeviceModules)
        call = lambda: modules.load_module(self.device.index, b"\0" * 64, "no-such-format")  # noqa: E731
        expect_raises(InputError, call, "a module of format 'no-such-format'")

    def test_load_module_that_is_broken(self) -> None:
        """load_module raises KernelBuildError for what is no module, and others load after it."""
        modules, image = self.ability(DeviceModules), self.image()
        broken = b"\xff\xfe no module \0" * 8
        call = lambda: modules.load_module(self.device.index, broken, image.format, image.options)  # noqa: E731
        self._expect_difference(self.kernel(), 1, "a module that was loaded before any other")
        expect_raises(KernelBuildError, call, "a module of bytes that mean nothing")
        self._expect_difference(self.kernel(), 1, "a module that was loaded after one that was refused")

    def test_launch(self) -> None:
        """launch: the kernel computes what the code generator was given, and writes nothing else."""
        kernel = self.kernel()
        for seed in range(3):
            a, b = self.operand(float32_bytes(seed)), self.operand(float32_bytes(seed + 7))
            y = self.operand(pattern(2 * NBYTES, seed))
            self.wait(self.launch(kernel, Region(a), Region(b), Region(y)))
            self.expect_part(self.read(y, 2 * NBYTES), seed, 0, minus(float32_bytes(seed), float32_bytes(seed + 7)))
            expect(self.read(a, NBYTES) == float32_bytes(seed), "a launch changed an operand that it reads")
            expect(self.read(b, NBYTES) == float32_bytes(seed + 7), "a launch changed an operand that it reads")

    def test_launch_at_offsets(self) -> None:
        """A Region among the arguments begins at its byte_offset, a multiple of the kind's offset_alignment."""
        kernel = self.kernel()
        step = -(-NBYTES // (unit := self.device.memory_kind().offset_alignment)) * unit
        size = 4 * step + NBYTES
        for number, (first, second, third) in enumerate(((1, 0, 0), (0, 2, 0), (0, 0, 3), (1, 2, 3), (3, 1, 2))):
            spaces = [self.operand(pattern(size, seed)) for seed in (1, 2, 3)]
            regions = [Region(space, k * step) for space, k in zip(spaces, (first, second, third), strict=True)]
            for region, seed in zip(regions, (number, number + 9), strict=False):
                self.write(region.space, float32_bytes(seed), region.byte_offset)
            self.wait(self.launch(kernel, regions[0], regions[1], regions[2]))
            found = self.read(spaces[2], size)
            self.expect_part(found, 3, third * step, minus(float32_bytes(number), float32_bytes(number + 9)))
        if (large_offset := self.large_offset()) is not None:
            regions = [Region(self.alloc(large_offset + NBYTES), large_offset) for _ in range(3)]
            for region, seed in zip(regions, (1, 2, 3), strict=True):
                self.write(region.space, float32_bytes(seed), large_offset)
            self.wait(self.launch(kernel, regions[0], regions[1], regions[2]))
            found = self.read(regions[2].space, NBYTES, large_offset)
            expect(found == minus(float32_bytes(1), float32_bytes(2)), f"a launch at offset {large_offset} is wrong")

    def test_launch_at_any_offset(self) -> None:
        """offset_alignment: a Region among the arguments may begin at any multiple of it, in each argument."""
        kernel, unit = self.kernel(), max(4, self.device.memory_kind().offset_alignment)
        size = 8 * unit + NBYTES
        for multiple in (1, 3, 5, 8):
            for moved in range(3):
                spaces = [self.operand(pattern(size, seed)) for seed in (1, 2, 3)]
                offsets = [multiple * unit if number == moved else 0 for number in range(3)]
                regions = [Region(space, offset) for space, offset in zip(spaces, offsets, strict=True)]
                for region, seed in zip(regions[:2], (4, 11), strict=True):
                    self.write(region.space, float32_bytes(seed), region.byte_offset)
                self.wait(self.launch(kernel, regions[0], regions[1], regions[2]))
                found, wanted = self.read(spaces[2], size), bytearray(pattern(size, 3))
                wanted[offsets[2] : offsets[2] + NBYTES] = minus(float32_bytes(4), float32_bytes(11))
                expect(
                    found == bytes(wanted),
                    f"a launch whose argument {moved} begins at {multiple * unit} is wrong, and the kind says that "
                    f"multiples of {self.device.memory_kind().offset_alignment} are legal",
                )
                for space in spaces:
                    self.free(space)

    def test_operands_of_one_space(self) -> None:
        """Arguments may be parts of one space, unless its kind says one_tensor_per_space."""
        if self.device.memory_kind().one_tensor_per_space:
            self.skip("takes no space twice in a launch, and says so")
        kernel = self.kernel()
        step = -(-NBYTES // (unit := self.device.memory_kind().offset_alignment)) * unit
        space = self.operand(pattern(2 * step + 2 * NBYTES, 4))
        self.write(space, float32_bytes(1), 0)
        self.write(space, float32_bytes(2), 2 * step)
        self.wait(self.launch(kernel, Region(space), Region(space, 2 * step), Region(space, step)))
        expect(
            self.read(space, NBYTES, step) == minus(float32_bytes(1), float32_bytes(2)),
            "a launch within one space is wrong",
        )
        expect(self.read(space, NBYTES) == float32_bytes(1), "a launch within one space changed what it reads")

    def test_launches_in_a_row(self) -> None:
        """Launches are queued: each reads what the launch or copy before it on the stream wrote."""
        kernel = self.kernel()
        for seed in range(_ROUNDS):
            b = self.operand(float32_bytes(seed + 3))
            spaces = [self.operand(float32_bytes(seed)), *(self.operand(bytes(NBYTES)) for _ in range(_CHAIN))]
            wanted, event = float32_bytes(seed), None
            for number in range(_CHAIN):
                x, y = Region(spaces[number]), Region(spaces[number + 1])
                if number % 3 == 2:
                    event = self.copy(x, y, NBYTES)
                else:
                    event, wanted = self.launch(kernel, x, Region(b), y), minus(wanted, float32_bytes(seed + 3))
            self.wait(event)
            expect(self.read(spaces[-1], NBYTES) == wanted, "launches and copies on stream None ran out of order")

    def test_launches_on_a_stream(self) -> None:
        """launch(stream): it comes after what is on that stream, and before what follows."""
        kernel, streams, index = self.kernel(), self.ability(Streams), self.device.index
        for seed in range(_ROUNDS):
            stream = streams.create_stream(index)
            a, b = self.operand(float32_bytes(seed)), self.operand(float32_bytes(seed + 5))
            middle, y, last = (self.operand(bytes(NBYTES)) for _ in range(3))
            self.copy(Region(a), Region(middle), NBYTES, stream)
            self.launch(kernel, Region(middle), Region(b), Region(y), stream)
            self.wait(self.copy(Region(y), Region(last), NBYTES, stream))
            wanted = minus(float32_bytes(seed), float32_bytes(seed + 5))
            expect(self.read(last, NBYTES) == wanted, "a launch on a stream was not in its order")
            streams.stream_sync(index, stream)
            streams.free_stream(stream)

    def test_launch_is_done_when_it_says_so(self) -> None:
        """launch: None means that it is done on return; an Event, when that has completed."""
        kernel = self.kernel()
        for seed in range(_ROUNDS):
            a, b, y = (
                self.operand(float32_bytes(seed)),
                self.operand(float32_bytes(seed + 5)),
                self.operand(bytes(NBYTES)),
            )
            self.wait(self.launch(kernel, Region(a), Region(b), Region(y)))
            expect(
                self._as_it_is_now(y) == minus(float32_bytes(seed), float32_bytes(seed + 5)),
                "a launch was not done, or in part",
            )

    def test_arguments_are_those_of_the_call(self) -> None:
        """launch: the list of arguments is the caller's again when the call returns."""
        kernel = self.kernel()
        if len(kernel.sequence.launches) != 1 or kernel.sequence.scratch:
            self.skip("has a code generator that makes several launches of one difference")
        (launch,) = kernel.sequence.launches
        a, b, y, other = (self.operand(float32_bytes(seed)) for seed in range(4))
        buffers = [Region(space) for space in (a, b, y)]
        args: list[object] = [buffers[number] for number in launch.args]
        event = self.launch_one(kernel, launch.kernel, launch.grid, launch.block, args)  # type: ignore[arg-type]
        args[:] = [Region(other) for _ in args]
        self.wait(event)
        expect(
            self.read(y, NBYTES) == minus(float32_bytes(0), float32_bytes(1)),
            "a launch took arguments from after its call",
        )
        expect(self.read(other, NBYTES) == float32_bytes(3), "a launch took arguments from after its call")

    def test_launch_of_what_there_is_not(self) -> None:
        """launch raises DeviceError for a function there is not, and work goes on after it."""
        kernel = self.kernel()
        self._expect_difference(kernel, 1, "a kernel that is launched before any other")
        launch = kernel.sequence.launches[0]
        y = self.operand(float32_bytes(1))
        args: list[object] = [Region(y) for _ in launch.args]
        call = lambda: self.wait(  # noqa: E731
            self.launch_one(kernel, "no_such_kernel", launch.grid, launch.block, args)  # type: ignore[arg-type]
        )
        expect_raises(DeviceError, call, "a launch of 'no_such_kernel'")
        expect(self.read(y, NBYTES) == float32_bytes(1), "a launch of no kernel wrote something")
        self._expect_difference(kernel, 2, "a kernel that is launched after a launch was refused")

    def test_modules_are_separate(self) -> None:
        """load_module: each is a module of its own, which others that come and go leave alone."""
        first = self.kernel()
        self._expect_difference(first, 1, "a module, the only one,")
        second = self.kernel()
        self._expect_difference(first, 1, "the first of two modules")
        self._expect_difference(second, 2, "the second of two modules")
        del first
        self._expect_difference(self.kernel(), 3, "a module that was loaded after another was dropped")
        self._expect_difference(second, 4, "a module that was loaded before another was dropped")

    def test_modules_have_their_own_code(self) -> None:
        """load_module: modules whose functions have the same names compute each what its own code says."""
        image, other = self.image(), self.other_image()
        first, second, third = self.loaded(image), self.loaded(other), self.loaded(image)
        a, b = float32_bytes(1), float32_bytes(6)
        for kernel, wanted in (
            (first, minus(a, b)),
            (second, minus(b, a)),
            (third, minus(a, b)),
            (second, minus(b, a)),
        ):
            x, z, y = self.operand(a), self.operand(b), self.operand(bytes(NBYTES))
            self.wait(self.launch(kernel, Region(x), Region(z), Region(y)))
            expect(self.read(y, NBYTES) == wanted, "a module computes what another one's code says")

    def test_launches_by_many_threads(self) -> None:
        """Methods may be called from any thread: launches that threads queue at once all happen."""
        kernel, failures, all_queued = self.kernel(), list[str](), Barrier(_THREADS)

        def work(seed: int, a: Space, b: Space, y: Space) -> None:
            try:
                events = [self.launch(kernel, Region(a), Region(b), Region(y)) for _ in range(_ROUNDS)]
                all_queued.wait(self.patience)
                for event in events:
                    self.wait(event)
            except Exception as error:
                all_queued.abort()
                failures.append(f"thread {seed}: {type(error).__name__}: {error}")

        jobs = [
            (s, self.operand(float32_bytes(s)), self.operand(float32_bytes(s + 9)), self.operand(bytes(NBYTES)))
            for s in range(_THREADS)
        ]
        threads = [Thread(target=work, args=job, daemon=True) for job in jobs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        expect(not failures, "; ".join(failures))
        for seed, _, _, y in jobs:
            expect(
                self.read(y, NBYTES) == minus(float32_bytes(seed), float32_bytes(seed + 9)),
                "launches of threads were mixed up",
            )

    def _expect_difference(self, kernel: SuiteKernel, seed: int, subject: str) -> None:
        a, b, y = self.operand(float32_bytes(seed)), self.operand(float32_bytes(seed + 5)), self.operand(bytes(NBYTES))
        self.wait(self.launch(kernel, Region(a), Region(b), Region(y)))
        expect(
            self.read(y, NBYTES) == minus(float32_bytes(seed), float32_bytes(seed + 5)),
            f"{subject} computes something else than a difference",
        )

    def _as_it_is_now(self, space: Space) -> bytes:
        """Returns the present content of ``space``, without waiting for work queued on stream None."""
        kind, streams = self.device.memory_kind(), self.device.capability(Streams)
        if kind.host_access != "none" and kind.coherent:
            return ctypes.string_at(self.host_address(space), NBYTES)
        if streams is None or not self.can_copy_host(space):
            self.skip("shows its memory after all that was queued alone")
        stream, target = streams.create_stream(self.device.index), self.host(b"\xee" * NBYTES)
        self.wait(self.copy(Region(space), Region(target), NBYTES, stream))
        streams.free_stream(stream)
        return self.host_bytes(target, NBYTES)
