"""CPUs of ARMv7-A: which are taken, what their registers are, and what is said of the others."""

from __future__ import annotations

import onnx.parser
import pytest

import landbridge as lb
from landbridge.errors import CodegenError, TargetError
from landbridge.instruction_sets.armv7.features import FLAGS, OF_CPU
from landbridge.instruction_sets.armv7.processor import HWCAPS, hwcap_bits
from landbridge.instruction_sets.registry import running_name
from landbridge.targets import Target
from landbridge.targets.llvm_cpu import cpu_names

MODEL = (
    '<ir_version: 10, opset_import: ["" : 18]> g (float[3,5] a, float[5,4] b) => (float[3,4] y) { y = MatMul(a, b) }'
)


def compiled(target: str) -> lb.Executable:
    return lb.compile(onnx.parser.parse_model(MODEL), target)


@pytest.mark.parametrize(
    "triple",
    [
        "arm-linux-gnueabihf",
        "armv7-linux-gnueabihf",
        "armv7l-linux-gnueabihf",
        "armv7a-linux-gnueabihf",
        "armv7-unknown-linux-gnueabihf",
        "armv8l-linux-gnueabihf",
    ],
)
def test_triples_as_users_write_them(triple: str) -> None:
    assert compiled(f"llvm -mtriple={triple} -mcpu=cortex-a9").modules[0].image.isa == "armv7"


@pytest.mark.parametrize(
    ("cpu", "reason"),
    [
        ("cortex-m4", "a microcontroller, which has Thumb instructions alone and runs no Linux"),
        ("cortex-r5", "a real-time processor, of profile R"),
        ("arm1176jzf-s", "older than ARMv7-A"),
        ("cortex-a9 -mattr=+thumb-mode", r"\+thumb-mode makes Thumb code, .*leave it out"),
        ("cortex-a9 -mattr=+soft-float", r"\+soft-float computes with floats in functions"),
    ],
)
def test_what_has_other_code_is_refused(cpu: str, reason: str) -> None:
    with pytest.raises(CodegenError, match=f"{reason}.*in the place of .*--emit-source"):
        compiled(f"llvm -mtriple=armv7-linux-gnueabihf -mcpu={cpu}")


def test_another_way_to_pass_floats_is_refused() -> None:
    with pytest.raises(CodegenError, match="names another way; legal: -mtriple=armv7-linux-gnueabihf, for a system"):
        compiled("llvm -mtriple=armv7-linux-gnueabi -mcpu=cortex-a9")


@pytest.mark.parametrize(
    ("features", "bits", "registers"), [("", 128, 16), ("-mattr=-neon", 32, 32), ("-mattr=-neon,-d32", 32, 32)]
)
def test_registers(features: str, bits: int, registers: int) -> None:
    target = Target(f"llvm -mtriple=armv7-linux-gnueabihf -mcpu=cortex-a5 {features}")
    assert (target.vector_bits, target.vector_registers) == (bits, registers)


def test_a_triple_or_a_cpu_alone_is_an_option() -> None:
    with pytest.raises(TargetError, match=r"a triple is an option, .*-mtriple=arm-linux-gnueabihf -mcpu=generic'"):
        Target("arm-linux-gnueabihf")
    with pytest.raises(TargetError, match="'llvm -mtriple=armv7-linux-gnueabihf -mcpu=cortex-a9'"):
        Target("cortex-a9")


def test_every_cpu_is_one_of_llvms_and_every_application_processor_is_known() -> None:
    names = set(cpu_names("armv7-linux-gnueabihf"))
    assert set(OF_CPU) <= names
    assert {name for name in names if name.startswith(("cortex-a", "cortex-x", "neoverse-"))} <= set(OF_CPU)


def test_every_feature_of_code_can_be_looked_for() -> None:
    for flag in FLAGS.values():
        assert any(hwcap_bits(kind, [flag]) for kind in HWCAPS), flag
    # arch/arm/include/uapi/asm/hwcap.h: HWCAP_NEON 1 << 12, HWCAP_VFPv4 1 << 16, HWCAP_VFPD32 1 << 19,
    # HWCAP_ASIMDDP 1 << 24, HWCAP_I8MM 1 << 27; HWCAP2_CRC32 1 << 4.
    assert hwcap_bits(16, ["neon", "vfpv4", "vfpd32", "asimddp", "i8mm"]) == 0x09091000
    assert hwcap_bits(26, ["neon", "crc32"]) == 0x10


@pytest.mark.parametrize(
    ("machine", "bits", "name"),
    [
        ("armv7l", 32, "armv7"),
        ("armv8l", 32, "armv7"),
        ("aarch64", 32, "armv7"),
        ("aarch64", 64, "aarch64"),
        ("arm64", 64, "aarch64"),
        ("x86_64", 64, "x86_64"),
        ("x86_64", 32, "x86_64 with addresses of 32 bits"),
        ("riscv999", 64, "riscv999"),
    ],
)
def test_a_process_under_a_kernel_of_other_addresses(machine: str, bits: int, name: str) -> None:
    assert running_name(machine, bits) == name
