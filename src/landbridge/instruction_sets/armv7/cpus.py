"""CPUs of ARMv7-A by LLVM's names."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from landbridge.instruction_sets.armv7.features import FLAGS, OF_CPU
from landbridge.instruction_sets.cpus import Cpus, Vectors
from landbridge.instruction_sets.isa import Isa

_NEON = Vectors(bits=128, registers=16)
#: Without NEON: the registers of VFP, each with one number.
_VFP = Vectors(bits=32, registers=32)
#: LLVM's features that change how functions are called: the runtime and the C library have A32 code for VFP.
_OTHER_CODE = {"thumb-mode": "makes Thumb code", "soft-float": "computes with floats in functions"}

#: VMLA multiplies by one lane of a register, and VFMA does not: products are made of the former on all CPUs. LLVM makes
#: two instructions of it for some, where a sum that is added to again at once would wait; here, several other sums are
#: in between. Its older scheduler loads what many multiplications want before the first of them, and spills half of
#: it: PP-OCR's direction network takes 11.5 million instructions with that one, and 9.4 with the newer one.
_TUNING = ("-expand-fp-mlx", "-vmlx-hazards", "-slowfpvmlx", "+slowfpvfmx", "+use-misched")


def _vectors(features: Collection[str]) -> Vectors:
    return _NEON if "neon" in features else _VFP


def _properties(vector_bits: int, flags: Sequence[str]) -> Isa:
    neon = "neon" in flags
    # VLD1 could load two registers (vld1x2). LLVM allocates them beside single ones so that tiles of 4 by 2 sums took
    # 44 to 46 instructions instead of 47 on Cortex-A9, and 54 to 74, with spills, on A7, A15 and A53.
    return Isa(
        vector_bits,
        fma="vfpv4" in flags,
        half=False,
        extrema=neon,
        many_bases=0,
        address_bits=32,
        advances=neon,
    )


def _refusal(cpu: str, features: Sequence[str]) -> str:
    for feature in features:
        if feature.startswith("+") and feature[1:] in _OTHER_CODE:
            return f"-mattr={feature} {_OTHER_CODE[feature[1:]]}, and images are A32 code for VFP; leave it out"
    if cpu in OF_CPU:
        return ""
    if cpu.startswith(("cortex-m", "sc", "star-mc")):
        reason = "a microcontroller, which has Thumb instructions alone and runs no Linux"
    elif cpu.startswith("cortex-r"):
        reason = "a real-time processor, of profile R, which runs no Linux"
    else:
        reason = "older than ARMv7-A"
    return (
        f"-mcpu={cpu} is {reason}; programs for armv7 are for -mcpu=generic or one of its CPUs, such as cortex-a7, "
        "cortex-a9 and cortex-a53"
    )


CPUS = Cpus(FLAGS, OF_CPU, "generic", _vectors, _properties, refusal=_refusal, tuning=_TUNING)
