"""Mutants of modules and launches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from landbridge.device.api import Event, Stream
from landbridge.errors import DeviceError, InputError
from tests.testing.c_kernels import Library, loaded
from tests.testing.mutants import Correct

Extents = tuple[int, int, int]


class _Launches(Correct):
    """Launches go through ``mutate``."""

    def launch(
        self, module: object, function: str, grid: Extents, block: Extents, args: Sequence[Any], stream: Stream | None
    ) -> Event | None:
        return self.mutate(module, function, grid, block, args, stream)

    def mutate(
        self, module: Any, function: str, grid: Extents, block: Extents, args: Sequence[Any], stream: Stream | None
    ) -> Event | None:
        return super().launch(module, function, grid, block, args, stream)


class FormatsAreText(Correct):
    """module_formats is one name, not several."""

    caught_by = "test_module_formats"

    def module_formats(self, index: int) -> Sequence[str]:
        return "mutant-elf"


class FormatsOfNobody(Correct):
    """module_formats leaves out what its code generator makes."""

    caught_by = "test_module_formats"
    requested = 0

    def module_formats(self, index: int) -> Sequence[str]:
        self.requested += 1
        return ("mutant-elf",) if self.requested % 2 else ("mutant-macho",)


class AnyFormat(Correct):
    """Whatever the format is called, the binary is taken for the device's own."""

    caught_by = "test_load_module_of_another_format"

    def load_module(self, index: int, binary: bytes, format: str, options: str = "") -> object:
        return loaded(binary)


class LoadsLater(Correct):
    """load_module keeps the binary, and looks at it at the first launch."""

    caught_by = "test_load_module_that_is_broken"

    def load_module(self, index: int, binary: bytes, format: str, options: str = "") -> object:
        if format != "mutant-elf":
            raise InputError(format)
        return _Later(binary)


class _Later:
    def __init__(self, binary: bytes) -> None:
        self._binary = binary

    def __getattr__(self, name: str) -> Any:
        return getattr(loaded(self._binary), name)


class LoadErrorsOfTheSystem(Correct):
    """What is no module raises what the loader of the system raises."""

    caught_by = "test_load_module_that_is_broken"

    def load_module(self, index: int, binary: bytes, format: str, options: str = "") -> object:
        if format == "mutant-elf" and binary[:4] != b"\x7fELF":
            raise OSError("invalid ELF header")
        return super().load_module(index, binary, format, options)


class OneTaskTooFew(_Launches):
    """The grid is the number of the last workgroup, not of all."""

    caught_by = "test_launch"

    def mutate(
        self, module: Any, function: str, grid: Extents, block: Extents, args: Sequence[Any], stream: Stream | None
    ) -> Event | None:
        return super().mutate(module, function, (grid[0] - 1, *grid[1:]), block, args, stream)


class ArgumentsInReverse(_Launches):
    """The first two arguments change places."""

    caught_by = "test_launch"

    def mutate(
        self, module: Any, function: str, grid: Extents, block: Extents, args: Sequence[Any], stream: Stream | None
    ) -> Event | None:
        return super().mutate(module, function, grid, block, [args[1], args[0], *args[2:]], stream)


class RefusesOneSpaceTwice(_Launches):
    """A launch refuses a space that it would write and read, and no kind says so."""

    caught_by = "test_operands_of_one_space"

    def mutate(
        self, module: Any, function: str, grid: Extents, block: Extents, args: Sequence[Any], stream: Stream | None
    ) -> Event | None:
        refuse_one_space_twice(function, args)
        return super().mutate(module, function, grid, block, args, stream)


def refuse_one_space_twice(function: str, args: Sequence[Any]) -> None:
    """Raises DeviceError where the last of ``args``, which kernels write, is of the space of another one."""
    spaces = [arg.space for arg in args]
    if spaces[-1] in spaces[:-1]:
        raise DeviceError(f"mutant: {function!r} would read and write one buffer")


class LaunchesFromTheStart(_Launches):
    """A launch takes the whole space of each argument: offsets are ignored."""

    caught_by = "test_launch_at_offsets"

    def mutate(
        self, module: Any, function: str, grid: Extents, block: Extents, args: Sequence[Any], stream: Stream | None
    ) -> Event | None:
        return super().mutate(module, function, grid, block, [replace(arg, byte_offset=0) for arg in args], stream)


class LaunchesAtSixteenBits(_Launches):
    """Of an argument's offset the low 16 bits count."""

    caught_by = "test_launch_at_offsets"

    def mutate(
        self, module: Any, function: str, grid: Extents, block: Extents, args: Sequence[Any], stream: Stream | None
    ) -> Event | None:
        low = [replace(arg, byte_offset=arg.byte_offset & 0xFFFF) for arg in args]
        return super().mutate(module, function, grid, block, low, stream)


class OneOffsetForAll(_Launches):
    """The offset of the first argument is that of all."""

    caught_by = "test_launch_at_offsets"

    def mutate(
        self, module: Any, function: str, grid: Extents, block: Extents, args: Sequence[Any], stream: Stream | None
    ) -> Event | None:
        moved = [replace(arg, byte_offset=args[0].byte_offset) for arg in args]
        return super().mutate(module, function, grid, block, moved, stream)


class OneArgumentForEachSpace(_Launches):
    """Arguments are bound by their space: of several of one space the last counts."""

    caught_by = "test_operands_of_one_space"

    def mutate(
        self, module: Any, function: str, grid: Extents, block: Extents, args: Sequence[Any], stream: Stream | None
    ) -> Event | None:
        by_space = {id(arg.space.handle): arg for arg in args}
        return super().mutate(module, function, grid, block, [by_space[id(arg.space.handle)] for arg in args], stream)


class LaunchesHaveAQueueOfTheirOwn(_Launches):
    """Launches on stream None are on another queue than copies."""

    caught_by = "test_launches_in_a_row"

    def mutate(
        self, module: Any, function: str, grid: Extents, block: Extents, args: Sequence[Any], stream: Stream | None
    ) -> Event | None:
        queue = stream or self.create_stream(args[0].space.device.index)
        return super().mutate(module, function, grid, block, args, queue)


class LaunchesOnStreamNone(_Launches):
    """Launches are queued on stream None, whatever stream is named."""

    caught_by = "test_launches_on_a_stream"

    def mutate(
        self, module: Any, function: str, grid: Extents, block: Extents, args: Sequence[Any], stream: Stream | None
    ) -> Event | None:
        return super().mutate(module, function, grid, block, args, None)


class NoneWhileQueued(_Launches):
    """launch returns None, and is done later."""

    caught_by = "test_launch_is_done_when_it_says_so"

    def mutate(
        self, module: Any, function: str, grid: Extents, block: Extents, args: Sequence[Any], stream: Stream | None
    ) -> Event | None:
        super().mutate(module, function, grid, block, args, stream)
        return None


class EventOfTheWorkBefore(_Launches):
    """The event of a launch is recorded before it."""

    caught_by = "test_launch_is_done_when_it_says_so"

    def mutate(
        self, module: Any, function: str, grid: Extents, block: Extents, args: Sequence[Any], stream: Stream | None
    ) -> Event | None:
        event = self.record_event(args[0].space.device.index, stream)
        super().mutate(module, function, grid, block, args, stream)
        return event


class KeepsTheList(_Launches):
    """The arguments are read when the launch is done, from the caller's list."""

    caught_by = "test_arguments_are_those_of_the_call"

    def mutate(
        self, module: Any, function: str, grid: Extents, block: Extents, args: Sequence[Any], stream: Stream | None
    ) -> Event | None:
        def run(grid: Extents, block: Extents, *arrays: Any) -> None:
            getattr(module, function)(grid, block, *(self._bytes(arg, "a launch") for arg in args))

        kernels = type("Kernels", (), {function: staticmethod(run)})
        return super().mutate(kernels, function, grid, block, args, stream)


class UnknownFunctionsDoNothing(_Launches):
    """A launch of a function there is not is left out."""

    caught_by = "test_launch_of_what_there_is_not"

    def mutate(
        self, module: Any, function: str, grid: Extents, block: Extents, args: Sequence[Any], stream: Stream | None
    ) -> Event | None:
        if not hasattr(module, function):
            return None
        return super().mutate(module, function, grid, block, args, stream)


class OneErrorStopsTheQueue(_Launches):
    """After a launch that was refused nothing is launched any more."""

    caught_by = "test_launch_of_what_there_is_not"
    failed = False

    def mutate(
        self, module: Any, function: str, grid: Extents, block: Extents, args: Sequence[Any], stream: Stream | None
    ) -> Event | None:
        self.failed = self.failed or not hasattr(module, function)
        if self.failed and hasattr(module, function):
            return None
        return super().mutate(module, function, grid, block, args, stream)


class OneModuleAtATime(Correct):
    """Loading a module takes the place of the one before."""

    caught_by = "test_modules_are_separate"
    current: Library | None = None
    loads = 0

    def load_module(self, index: int, binary: bytes, format: str, options: str = "") -> object:
        super().load_module(index, binary, format, options)
        self.loads += 1
        return _OnlyTheLast(self, self.loads, loaded(binary))


class _OnlyTheLast:
    def __init__(self, api: OneModuleAtATime, number: int, library: Library) -> None:
        self._api, self._number, self._library = api, number, library

    def __getattr__(self, name: str) -> Any:
        if self._number != self._api.loads:
            return lambda *args: None
        return getattr(self._library, name)


class OneArgumentBlock(_Launches):
    """There is one block of arguments for a kernel: who sets it while a launch is queued changes that launch."""

    caught_by = "test_launches_by_many_threads"

    def __init__(self) -> None:
        super().__init__()
        self.block: dict[str, Sequence[Any]] = {}

    def mutate(
        self, module: Any, function: str, grid: Extents, block: Extents, args: Sequence[Any], stream: Stream | None
    ) -> Event | None:
        self.block[function] = args

        def run(grid: Extents, block: Extents, *arrays: Any) -> None:
            getattr(module, function)(grid, block, *(self._bytes(arg, "a launch") for arg in self.block[function]))

        kernels = type("Kernels", (), {function: staticmethod(run)})
        return super().mutate(kernels, function, grid, block, args, stream)


class ModulesByLength(Correct):
    """A module that was loaded is taken for every other one of its length."""

    caught_by = "test_modules_have_their_own_code"

    def __init__(self) -> None:
        super().__init__()
        self.modules: dict[int, object] = {}

    def load_module(self, index: int, binary: bytes, format: str, options: str = "") -> object:
        return self.modules.setdefault(len(binary), super().load_module(index, binary, format, options))


class FunctionsByName(Correct):
    """Functions are found by their names in all modules, the oldest first."""

    caught_by = "test_modules_have_their_own_code"
    first: object = None

    def load_module(self, index: int, binary: bytes, format: str, options: str = "") -> object:
        module = super().load_module(index, binary, format, options)
        self.first = self.first or module
        return self.first


class OffsetsByTwo(_Launches):
    """Kernels take operands at multiples of 128 bytes, and the kind says 64: what is between is rounded down."""

    caught_by = "test_launch_at_any_offset"

    def mutate(
        self, module: Any, function: str, grid: Extents, block: Extents, args: Sequence[Any], stream: Stream | None
    ) -> Event | None:
        moved = [replace(arg, byte_offset=arg.byte_offset & ~127) for arg in args]
        return super().mutate(module, function, grid, block, moved, stream)


class LaunchesLeak(_Launches):
    """4 KiB of this process stay behind with every launch."""

    caught_by = "test_no_leaks_of_launches"

    def __init__(self) -> None:
        super().__init__()
        self.retained: list[bytearray] = []

    def mutate(
        self, module: Any, function: str, grid: Extents, block: Extents, args: Sequence[Any], stream: Stream | None
    ) -> Event | None:
        self.retained.append(bytearray(b"x" * 4096))
        return super().mutate(module, function, grid, block, args, stream)


class ArgumentsLeak(_Launches):
    """The block of arguments of a launch is memory of the device that nobody frees."""

    caught_by = "test_no_leaks_of_launches"

    def mutate(
        self, module: Any, function: str, grid: Extents, block: Extents, args: Sequence[Any], stream: Stream | None
    ) -> Event | None:
        args[0].space.handle.instance.used_bytes += 64
        return super().mutate(module, function, grid, block, args, stream)
