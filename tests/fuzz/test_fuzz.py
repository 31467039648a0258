"""Every fuzz target on its seeds, on the inputs that it failed on once, and on a few random ones.

``python tests/fuzz/fuzz_lbx.py -max_total_time=600`` searches further; CONTRIBUTING.md says how.
"""

from __future__ import annotations

import importlib
from types import ModuleType

import fuzz_onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.witnesses.guard_pages import in_child

TARGETS = ["allocators", "csv", "device_name", "dlpack", "ir", "lbx", "nodes", "onnx", "plan", "target", "tensor"]
#: Targets that run compiled code: in a process of their own, whose death is a failure.
IN_CHILD = ("nodes",)

#: Inputs that a target failed on, what was wrong beside them.
FOUND = {
    "csv": [
        b"id,lower,upper,size\nb0,0,3,4\nb1,3,9,4\x9d",  # UnicodeDecodeError
        b'id,lower,upper,size\n"' + b"a" * 200_000,  # csv.Error: a field larger than csv reads
        b"id,lower,upper,size\nb0,0,3," + b"9" * 5000,
    ],
    "device_name": [
        b"a(" * 3000 + b"cpu" + b")" * 3000,  # RecursionError
        b"cpu:" + b"9" * 5000,  # ValueError: more digits than int() reads
    ],
    "ir": [
        b'builtin.module {\n  %0 = "lb.constant"() {symbol = @' + b"w" * 80 + b' : () -> "' + b"x" * 4000,  # no end
        b"builtin.module {" * 2000,  # RecursionError
        b"builtin.module { func.func private @main() -> () }",  # a graph without a body
    ],
    "allocators": [],
    "lbx": [],
    "nodes": [],
    "onnx": [
        fuzz_onnx.SEEDS[0].replace(b"*\x19\x08\x04", b"*\x19\x08\x03"),  # 4 values of shape (3,)
        bytes.fromhex(  # SerdeError: a name that is no UTF-8
            "08083a790a220a017812017422095472616e73706f73652a0d0a047065726d50010808a001073a000a130a01780a0174"
            "12016d22064d61744d756c3a000a110a016d12018e2207536f66746d61783a001201675a130a0178120e0a0c08011208"
            "0a0208040a02082862130a0178120e0a0c080312080a0208000a02080542040a00100a"
        ),
        bytes.fromhex(  # KeyError: an output that no node makes
            "08083aae010a7a0a0163120179220249662a350a0b7468656e5f6272616e636832230a0d0a017812016122034e65673a"
            "001201743d0f0a0161120a0a08080112040a020802a001052a350a0b656c73655f6272616e636832230a0d0a01781201"
            "6122034162733a00120a0a08080112040a020a08080112040a020802a001053a001201675a0b0a016312060a04080912"
            "005a0f0a0178120a0a08080112040a020802620f0a0179120a0a08080112040a02080242040a001011"
        ),
    ],
    "dlpack": [
        bytes.fromhex("0101000c00020000 00ff000003040500 003a01ff01ff01"),  # OverflowError: strides of no elements
    ],
    "target": [
        b"\0llvm -mcpu=\0",  # ValueError of subprocess: NUL in an argument
        b'\0{"kind": "llvm", "mcpu": "\\ud800"}',  # UnicodeEncodeError
        b'\0{"kind": "fuzzed", "count": ' + b"1" * 5000 + b"}",  # ValueError: more digits than int() reads
        b'\0{"kind": "fuzzed", "words": ' + b"[" * 100_000,  # RecursionError
        b'\0{"kind": "fuzzed", "host": ' * 500 + b"1" + b"}" * 500,
        b'\1{"count": 4}',  # KeyError: no kind
        b'\0{"kind": "fuzzed", "memory": [{"scope": {}, "host_access": "none", "coherent": true}]}',  # unhashable
        b'\0{"kind": "fuzzed", "memory": [{"scope": 5, "host_access": "none", "coherent": "yes"}]}',  # accepted
        b'\0{"kind": "fuzzed", "memory": [{"scope": "a", "host_access": "none", "coherent": true, "capacity": NaN}]}',
    ],
    "plan": [],
    "tensor": [],
}


def target(name: str) -> ModuleType:
    return importlib.import_module(f"fuzz_{name}")


def check(name: str, data: bytes) -> None:
    if name in IN_CHILD:
        in_child(target(name).check, data)
    else:
        target(name).check(data)


@pytest.mark.parametrize("name", TARGETS)
def test_seeds(name: str) -> None:
    for seed in target(name).SEEDS:
        check(name, seed)


@pytest.mark.parametrize(("name", "number"), [(name, n) for name, found in FOUND.items() for n in range(len(found))])
def test_found(name: str, number: int) -> None:
    check(name, FOUND[name][number])


@pytest.mark.sample(7)
@pytest.mark.parametrize("name", TARGETS)
def test_random(name: str) -> None:
    seeds = target(name).SEEDS

    @settings(max_examples=25, suppress_health_check=list(HealthCheck), database=None)
    @given(st.data())
    def check_some(data: st.DataObject) -> None:
        content = bytearray(data.draw(st.sampled_from(seeds) | st.binary(max_size=64)))
        for _ in range(data.draw(st.integers(0, 4))):
            at = data.draw(st.integers(0, len(content)))
            content[at : at + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
        check(name, bytes(content))

    check_some()
