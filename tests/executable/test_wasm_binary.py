"""WebAssembly modules as bytes: what is read is what LLVM wrote, and other bytes are refused."""

from __future__ import annotations

from functools import cache

import pytest
import wasmtime
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from landbridge.codegen.llvm.compile_jobs import Job, compile_all
from landbridge.codegen.llvm.machine import Machine
from landbridge.errors import ExecutableError
from landbridge.executable.wasm_binary import PAGE_BYTES, data_bytes, imported_functions, placed, with_exports

MACHINE = Machine("wasm32-unknown-unknown", "generic", "+simd128,+bulk-memory", relocation="static")
#: Two tables, one with the address of an element of the other.
TEXT = """
declare double @outside(double)
@numbers = internal constant [3 x i32] [i32 7, i32 8, i32 9]
@places = internal constant [2 x ptr] [ptr @numbers, ptr getelementptr ([3 x i32], ptr @numbers, i32 0, i32 2)]
define i32 @read(i32 %which) {
  %at = getelementptr [2 x ptr], ptr @places, i32 0, i32 %which
  %place = load volatile ptr, ptr %at
  %value = load volatile i32, ptr %place
  ret i32 %value
}
define double @call(double %x) { %y = call double @outside(double %x) ret double %y }
"""


@cache
def compiled() -> bytes:
    """The object, made in another process: there LLVM changes options that code for this processor depends on."""
    return compile_all([Job(TEXT, True)], MACHINE)[0]


@cache
def module() -> bytes:
    return with_exports(compiled(), ["read", "call"])


def instance(code: bytes, pages: int) -> tuple[wasmtime.Store, wasmtime.Memory, dict[str, wasmtime.Func]]:
    store = wasmtime.Store()
    loaded = wasmtime.Module(store.engine, code)
    memory = wasmtime.Memory(store, wasmtime.MemoryType(wasmtime.Limits(pages, None)))
    kind = wasmtime.FuncType([wasmtime.ValType.f64()], [wasmtime.ValType.f64()])
    outside = wasmtime.Func(store, kind, lambda x: 2 * x)
    stack = wasmtime.Global(store, wasmtime.GlobalType(wasmtime.ValType.i32(), True), wasmtime.Val.i32(4096))
    given = {"__linear_memory": memory, "outside": outside, "__stack_pointer": stack}
    imports = [given[each.name or ""] for each in loaded.imports]
    return store, memory, dict(wasmtime.Instance(store, loaded, imports).exports(store).items())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "base", [0, 64, 8192, 63 << 10, 3 << 20, pytest.param((1 << 31) + 4096, marks=pytest.mark.full)]
)
def test_data_are_found_wherever_they_lie(base: int) -> None:
    store, memory, functions = instance(placed(module(), base), base // PAGE_BYTES + 2)
    assert [functions["read"](store, which) for which in range(2)] == [7, 9]
    assert functions["call"](store, 4.0) == 8.0
    assert int.from_bytes(memory.read(store, base, base + data_bytes(module())), "little") != 0


def test_what_a_module_needs() -> None:
    assert imported_functions(module()) == ["outside"]
    assert data_bytes(module()) == 3 * 4 + 2 * 4 or data_bytes(module()) % 4 == 0
    with pytest.raises(ExecutableError, match="does not define 'outside'"):
        with_exports(compiled(), ["outside"])


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 1 << 16), st.integers(1, 255), st.booleans())
def test_damaged_bytes_raise_one_error(at: int, change: int, cuts: bool) -> None:
    whole = module()
    at %= len(whole)
    damaged = whole[:at] if cuts else whole[:at] + bytes([whole[at] ^ change]) + whole[at + 1 :]
    for use in (data_bytes, imported_functions, lambda code: placed(code, 1 << 20)):
        try:
            use(damaged)
        except ExecutableError as error:
            assert "no WebAssembly module" in str(error)
