"""Target: building, equality, derived facts, memory, devices."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from types import SimpleNamespace

import pytest

import landbridge as lb
from landbridge.errors import TargetError
from landbridge.memory_kind import MemoryKind
from landbridge.targets import Target, known_tags, register_tag


def test_llvm_alone_is_this_host_and_is_recorded() -> None:
    target = Target("llvm")
    assert target.kind == "llvm"
    assert target.mcpu not in ("native", "generic", "")
    assert target.num_cores == len(os.sched_getaffinity(0))
    assert target.mtriple.count("-") >= 2
    assert target.l1_bytes >= 4096
    assert target.l2_bytes >= target.l1_bytes
    assert Target("llvm -mcpu=native") == target
    assert target.device_types == ("cpu",)


def test_native_vectors_agree_with_the_features_recorded() -> None:
    target = Target("llvm")
    features = target.attrs["features"]
    assert isinstance(features, tuple)
    if target.attrs["isa"] == "x86_64":
        wide = "avx512f" in features
        assert target.vector_bits == (512 if wide else 256 if "avx" in features else 128)
        assert target.vector_registers == (32 if wide else 16)
    else:
        assert (target.vector_bits, target.vector_registers) == (128, 32)


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("text", "bits", "registers", "isa"),
    [
        ("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=generic", 128, 16, "x86_64"),
        ("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=haswell", 256, 16, "x86_64"),
        ("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=skylake-avx512", 512, 32, "x86_64"),
        ("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=haswell -mattr=-avx", 128, 16, "x86_64"),
        ("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=generic -mattr=+avx512f", 512, 32, "x86_64"),
        ("llvm -mtriple=aarch64-unknown-linux-gnu -mcpu=generic", 128, 32, "aarch64"),
        ("raspberry-pi-4", 128, 32, "aarch64"),
    ],
)
def test_vectors_of_named_cpus(text: str, bits: int, registers: int, isa: str) -> None:
    target = Target(text)
    assert (target.vector_bits, target.vector_registers, target.attrs["isa"]) == (bits, registers, isa)


def test_declared_facts_win_over_derived_ones() -> None:
    target = Target({"kind": "llvm", "num_cores": 7, "vector-bits": 128, "l2-bytes": 4 << 20})
    assert (target.num_cores, target.vector_bits, target.l2_bytes) == (7, 128, 4 << 20)


def test_generic_does_not_depend_on_this_host() -> None:
    target = Target("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=generic")
    assert (target.mcpu, target.mattr, target.num_cores) == ("generic", (), 4)


def test_forms_are_equal_and_hash_same() -> None:
    target = Target("llvm -num-cores=3")
    for other in (
        Target(target),
        Target(str(target)),
        Target(target.to_dict()),
        Target(target.to_json()),
        Target.from_json(target.to_json()),
        copy.deepcopy(target),
        pickle.loads(pickle.dumps(target)),
    ):
        assert other == target
        assert hash(other) == hash(target)
    assert target != Target("llvm -num-cores=2")
    assert target != "llvm -num-cores=3"


@pytest.mark.parametrize("kind", ["llvm", "c"])
def test_denormals_are_flushed_unless_declared(kind: str) -> None:
    assert Target(kind).options["denormals"] == "flush" and Target(kind) == Target(f"{kind} -denormals=flush")
    retained = Target({"kind": kind, "denormals": "keep"})
    assert retained == Target(f"{kind} -denormals=keep") != Target(kind)
    assert "-denormals=keep" in str(retained) and Target.from_json(retained.to_json()).options["denormals"] == "keep"


def test_a_target_with_memory_and_host_is_written_as_json_and_read_back() -> None:
    vtcm = MemoryKind("global.vtcm", host_access="none", coherent=False, coherence_granule=128, capacity=1 << 20)
    target = Target(
        {
            "kind": "llvm",
            "mcpu": "generic",
            "memory": [vtcm],
            "shares": [["cpu", "global"]],
            "keys": ["npu"],
            "formats": ["elf", "elf, 2"],
        },
        host="llvm",
    )
    assert str(target).startswith("{")
    assert Target(str(target)) == target == Target.from_json(target.to_json())
    assert target.memory == (vtcm,)
    assert target.memory_kind("global.vtcm").capacity == 1 << 20
    assert target.shares == (("cpu", "global"),)
    assert target.keys == ("npu",)
    assert target.formats == ("elf", "elf, 2")
    assert target.host == Target("llvm")
    with pytest.raises(TargetError, match=r"global\.vtcm"):
        target.memory_kind("global.vtcn")


def test_host_memory_is_one_coherent_scope() -> None:
    memory = Target("llvm -mcpu=generic").memory_kind("")
    assert (memory.scope, memory.host_access, memory.coherent) == ("global", "read_write", True)


def test_from_json_reads_what_was_recorded_without_llvm() -> None:
    text = Target("llvm").to_json()
    program = (
        "import sys; from landbridge.targets import Target; t = Target.from_json(sys.argv[1]);"
        "assert t.to_json() == sys.argv[1] and t.num_cores; assert 'llvmlite' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program, text], check=True)


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("lvm", "did you mean 'llvm'"),
        ("llvm -mcpus=generic", "did you mean 'mcpu'"),
        ("llvm -mtriple=x86_64-linux-gnu -mcpu=skylak", "did you mean 'skylake'"),
        ("llvm -mtriple=x86_64-linux-gnu -mattr=+avx51", "did you mean 'avx512f'"),
        (
            "llvm -mtriple=x86_64-linux-gnu -mcpu=cortex-a72",
            "'cortex-a72' for x86_64-linux-gnu, but for aarch64-linux-gnu",
        ),
        ("llvm -mtriple=x86_64-linux-gnu -mcpu=cortexa76", "did you mean 'cortex-a76' of aarch64-linux-gnu or"),
        ("llvm -mtriple=x86_64-linux-gnu -mattr=+sve", "no feature '\\+sve' for x86_64-linux-gnu, but for aarch64"),
        ("llvm -mtriple=aarch65-linux-gnu", "no instruction set 'aarch65'.*did you mean 'aarch64'"),
        ("llvm -mtriple=foo -mcpu=generic", "no instruction set 'foo'.*legal: as in x86_64-linux-gnu"),
        ("llvm -mtriple=aarch64-linux-gnu", "-mcpu is missing beside -mtriple=aarch64.*every CPU of aarch64"),
        (
            "llvm -mtriple=powerpc64le-linux-gnu",
            "no code is made for powerpc64le, .*for x86_64, aarch64, armv7, riscv64: .* as C11",
        ),
        ("llvm -mtriple=powerpc64le-linux-gnu -mcpu=cortex-a72", "no code is made for powerpc64le"),
        (
            "llvm -mtriple=arm64-apple-darwin",
            "for Linux with glibc alone, .*names another system; legal: -mtriple=aarch64-linux-gnu",
        ),
        (
            "llvm -mtriple=x86_64-pc-windows-msvc -mcpu=m1",
            "for Linux with glibc alone, .*legal: -mtriple=x86_64-linux-gnu",
        ),
        ("llvm -mtriple=aarch64-linux-android -mcpu=no-such", "Android has a C library of its own"),
        ("llvm -mtriple=xtensa-esp32-elf", "microcontroller runs C .* -t freestanding"),
        ("armv7l", "'armv7l' is not a target: name its CPU, .*-mtriple=armv7-linux-gnueabihf -mcpu=cortex-a9"),
        (
            "armv6l",
            "'armv6l' is not a target: .* on x86-64, AArch64, ARMv7 and RISC-V of 64 bits; .* as C11",
        ),
        ("riscv64", "'riscv64' is not a target: name its CPU, .*-mtriple=riscv64-linux-gnu -mcpu=generic"),
        ("ppc64le", "'ppc64le' is not a target: .* as C11"),
        ("s390x", "little-endian CPUs alone, and s390x is big-endian"),
        ("android", "Android has a C library of its own"),
        ("macOS", "nothing is made for macOS"),
        ("windows", "WSL 2"),
        ("esp32", "microcontroller runs C .* -t freestanding"),
        ("freestanding -mcpu=cortex-m5", "knows no processor 'cortex-m5'.*legal: cortex-m4"),
        ("cuda", "no kind makes code for cuda; the kinds 'opencl' and 'vulkan' do"),
        ("llvm -mattr=avx2", "starts with"),
        ("llvm -num-cores=0", "at least 1"),
        ("llvm -num-cores=two", "an integer"),
        ("llvm -vector-bits=200", "'vector-bits' was given '200'; legal: a power of two, at least 32"),
        ("llvm -num-cores=1 -num-cores=2", "twice"),
        ("llvm -denormals=kept", "'denormals' was given 'kept'; legal: one of flush, keep"),
        ("c -denormals", "legal: one of flush, keep"),
        ("opencl -denormals=keep", "has no option 'denormals'"),
        ("vulkan -denormals=flush", "has no option 'denormals'"),
        ("llvm mcpu=generic", "is not an option"),
        ("llvm -mcpu='generic", "does not parse"),
        ("", "is empty"),
        ("{", "does not parse"),
        ({"mcpu": "generic"}, "states no kind"),
        ({"kind": "llvm", "memory": [{"scope": "global", "coherant": True}]}, "did you mean 'coherent'"),
        ({"kind": "llvm", "memory": [{"scope": "x"}]}, "memory kind"),
        ({"kind": "llvm", "memory": "global"}, "must be a list"),
        ({"kind": "llvm", "shares": [["cpu"]]}, "pairs"),
        (7, "not int"),
    ],
)
def test_errors_name_what_is_legal(spec: object, says: str) -> None:
    with pytest.raises(TargetError, match=says):
        Target(spec)  # type: ignore[arg-type]


def test_native_needs_this_hosts_instruction_set() -> None:
    other = "x86_64" if Target("llvm").attrs["isa"] == "aarch64" else "aarch64"
    with pytest.raises(TargetError, match="native means this host"):
        Target(f"llvm -mtriple={other}-unknown-linux-gnu -mcpu=native")


def test_a_target_is_frozen() -> None:
    target = Target("llvm -mcpu=generic")
    with pytest.raises(AttributeError):
        target.kind = "c"  # type: ignore[misc]
    with pytest.raises(TypeError):
        target.options["mcpu"] = "x"  # type: ignore[index]


def test_tags_stand_for_descriptions_and_options_override_them() -> None:
    register_tag("test-board", {"kind": "llvm", "mcpu": "generic", "num-cores": 2})
    assert "test-board" in known_tags()
    assert Target("test-board").num_cores == 2
    assert Target("test-board -num-cores=5").num_cores == 5
    with pytest.raises(TargetError, match="already stands"):
        register_tag("test-board", {"kind": "llvm"})
    with pytest.raises(TargetError, match="one word"):
        register_tag("two words", {"kind": "llvm"})


def test_from_device_takes_the_devices_memory_and_facts() -> None:
    memory = MemoryKind("global", host_access="read_write", coherent=True, alignment=4096)
    api = SimpleNamespace(target_properties=lambda index: {"mcpu": "generic", "num-cores": 10 + index})
    api.module_formats = lambda index: ("elf", "blob")
    device = SimpleNamespace(name="cpu", index=1, api=api, memory_kinds={"global": memory})
    target = Target.from_device(device)
    assert (target.kind, target.num_cores, target.memory) == ("llvm", 11, (memory,))
    assert target.formats == ("elf", "blob")
    plain = SimpleNamespace(name="cpu", index=0, api=object(), memory_kinds={"global": memory})
    assert Target.from_device(plain).mcpu == Target("llvm").mcpu
    unknown = SimpleNamespace(name="quantum", index=0, api=object(), memory_kinds={})
    with pytest.raises(TargetError, match="quantum"):
        Target.from_device(unknown)


def test_from_device_takes_a_name() -> None:
    assert Target.from_device("cpu:0") == Target.from_device(lb.device("cpu:0"))
    with pytest.raises(lb.UnknownDeviceError, match="quantum"):
        Target.from_device("quantum:0")
    with pytest.raises(TargetError, match=r"name of a device, as 'opencl:0', .* not int"):
        Target.from_device(3)  # type: ignore[arg-type]


def test_a_scope_that_only_a_device_has() -> None:
    with pytest.raises(TargetError, match=r"legal: global; Target.from_device\('opencl:0'\) has those of that device"):
        Target("opencl").memory_kind("global.texture")
    with pytest.raises(TargetError, match=r"legal: global, global.pinned$"):
        Target("llvm").memory_kind("global.texture")
