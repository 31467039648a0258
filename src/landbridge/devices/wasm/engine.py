"""One linear memory in Wasmtime, and the modules that work on it."""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import wasmtime

from landbridge.devices.wasm.address_ranges import AddressRanges
from landbridge.devices.wasm.c_functions import c_function
from landbridge.errors import DeviceError, ExecutableError, KernelBuildError, OutOfMemoryError
from landbridge.executable.wasm_binary import ALIGNMENT, PAGE_BYTES, STACK_BYTES, data_bytes, placed
from landbridge.process.locks import new_lock

#: The most arguments of a kernel.
_MOST_ARGUMENTS = 4096
_MOST_PAGES = 1 << 16


class LinkedKernels:
    """The exported functions of one module, and the memory of its data, which it gives back."""

    def __init__(self, functions: Mapping[str, wasmtime.Func], release: Callable[[], None]) -> None:
        self.functions, self._release = functions, release

    def __del__(self) -> None:
        self._release()


class LinearMemory:
    """A memory of 32-bit addresses, which grows as it is used and never moves, and kernels that run on it.

    Methods may be called from any thread; one kernel runs at a time.
    """

    def __init__(self) -> None:
        config = wasmtime.Config()
        config.wasm_simd = True
        self._lock = new_lock()
        self._store = wasmtime.Store(wasmtime.Engine(config))
        self._memory = wasmtime.Memory(self._store, wasmtime.MemoryType(wasmtime.Limits(1, _MOST_PAGES)))
        self._base = self._address()
        #: What was given back and is not a hole yet.
        self._returned: deque[int] = deque()
        self._ranges = AddressRanges(ALIGNMENT, _MOST_PAGES * PAGE_BYTES)
        stack = self.take(STACK_BYTES, ALIGNMENT)
        kind = wasmtime.GlobalType(wasmtime.ValType.i32(), mutable=True)
        self._stack_pointer = wasmtime.Global(self._store, kind, wasmtime.Val.i32(stack + STACK_BYTES))
        self._arguments = self.take(8 * _MOST_ARGUMENTS, 8)
        self._words = (ctypes.c_uint64 * _MOST_ARGUMENTS).from_address(self.host_address(self._arguments))

    @property
    def free_bytes(self) -> int:
        """Returns the bytes of the address space that are not handed out."""
        with self._lock:
            self._reclaim()
        return _MOST_PAGES * PAGE_BYTES - self._ranges.taken_bytes

    def host_address(self, address: int) -> int:
        """Returns where the host has byte ``address``."""
        return self._base + address

    def take(self, nbytes: int, alignment: int) -> int:
        """Returns the address of ``nbytes`` bytes at a multiple of ``alignment``; raises OutOfMemoryError."""
        with self._lock:
            self._reclaim()
            at = self._ranges.take(nbytes, alignment)
            if at is None:
                free = _MOST_PAGES * PAGE_BYTES - self._ranges.taken_bytes
                raise OutOfMemoryError(
                    f"wasm: {nbytes:,} bytes requested, and no range of that size is left of the 4 GiB that 32-bit "
                    f"addresses reach; {free:,} bytes are free in all: free tensors and Sessions"
                )
            try:
                self._grow(at + max(nbytes, 1))
            except OutOfMemoryError:
                self._ranges.give_back(at)
                raise
            return at

    def give_back(self, address: int) -> None:
        """Gives back what ``take`` returned. It takes no lock: the garbage collector may call it while one is held."""
        self._returned.append(address)

    def _reclaim(self) -> None:
        """Makes holes of what was given back; the caller holds the lock."""
        while self._returned:
            self._ranges.give_back(self._returned.popleft())

    def load(self, binary: bytes) -> LinkedKernels:
        """Returns the kernels of ``binary``, compiled; raises KernelBuildError with Wasmtime's message."""
        try:
            nbytes = data_bytes(binary)
        except ExecutableError as error:
            raise KernelBuildError(f"wasm: {error}") from error
        base = self.take(nbytes, ALIGNMENT) if nbytes else 0
        try:
            with self._lock:
                module = wasmtime.Module(self._store.engine, placed(binary, base))
                instance = wasmtime.Instance(self._store, module, [self._import(each) for each in module.imports])
                exports = instance.exports(self._store)
                functions = {name: found for name, found in exports.items() if isinstance(found, wasmtime.Func)}
        except (wasmtime.WasmtimeError, wasmtime.Trap, KeyError, ExecutableError) as error:
            if nbytes:
                self.give_back(base)
            raise KernelBuildError(f"wasm: Wasmtime refuses the module: {error}") from error
        return LinkedKernels(functions, (lambda: self.give_back(base)) if nbytes else lambda: None)

    def run(self, function: wasmtime.Func, addresses: Sequence[int], tasks: int) -> None:
        """Calls ``function`` on buffers at ``addresses`` for all ``tasks``; raises DeviceError for a trap."""
        if len(addresses) > _MOST_ARGUMENTS:
            raise DeviceError(f"wasm: a kernel has {len(addresses)} buffers; at most {_MOST_ARGUMENTS} are legal")
        with self._lock:
            self._words[: len(addresses)] = list(addresses)
            try:
                function(self._store, self._arguments, 0, tasks)
            except (wasmtime.Trap, wasmtime.WasmtimeError) as error:
                raise DeviceError(f"wasm: {str(error).splitlines()[-1].strip()}") from error

    def _import(self, wanted: wasmtime.ImportType) -> Any:
        """Returns what a module imports; raises KeyError for what it cannot have."""
        name = wanted.name or ""
        if isinstance(wanted.type, wasmtime.FuncType):
            return c_function(self._store, name, wanted.type)
        return {"__linear_memory": self._memory, "__stack_pointer": self._stack_pointer}[name]

    def _grow(self, end: int) -> None:
        missing = -(-end // PAGE_BYTES) - self._memory.size(self._store)
        if missing <= 0:
            return
        try:
            self._memory.grow(self._store, missing)
        except wasmtime.WasmtimeError as error:
            raise OutOfMemoryError(
                f"wasm: the memory cannot grow by {missing * PAGE_BYTES:,} bytes: {error}"
            ) from error
        if self._address() != self._base:
            raise DeviceError("wasm: Wasmtime moved the memory; it needs address space for 4 GiB (ulimit -v)")

    def _address(self) -> int:
        return int(ctypes.cast(self._memory.data_ptr(self._store), ctypes.c_void_p).value or 0)
