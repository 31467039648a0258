"""CPU features that ARMv7 code depends on: LLVM's names, and those of Linux (``/proc/cpuinfo``, hwcap bits).

Sources: LLVM's ARMProcessors.td (22); Linux, arch/arm/include/uapi/asm/hwcap.h.
"""

from __future__ import annotations

#: LLVM feature -> flag, for the features that change which instructions ordinary code may contain.
FLAGS = {
    "neon": "neon",
    "vfp3": "vfpv3",
    "d32": "vfpd32",
    "vfp4": "vfpv4",
    "hwdiv-arm": "idiva",
    "crc": "crc32",
    "fullfp16": "fphp",
    "dotprod": "asimddp",
    "fp16fml": "asimdfhm",
    "i8mm": "i8mm",
    "bf16": "asimdbf16",
}

_V7 = ("neon", "vfp3", "d32")
_FUSED = (*_V7, "vfp4")
_DIVIDES = (*_FUSED, "hwdiv-arm")
#: Of ARMv8, whose further instructions Linux has no flag for: these all have the one for checksums.
_V8 = (*_DIVIDES, "crc")
_DOT = (*_V8, "dotprod")
_HALF = (*_DOT, "fullfp16")
_BFLOAT = (*_DOT, "i8mm", "bf16")

#: CPUs by LLVM's names, with the features that they have in common.
_CPUS: tuple[tuple[tuple[str, ...], str], ...] = (
    (_V7, "generic cortex-a8 cortex-a9"),
    (_FUSED, "cortex-a5"),
    (_DIVIDES, "cortex-a7 cortex-a12 cortex-a15 cortex-a17 krait swift"),
    (_V8, "cortex-a32 cortex-a35 cortex-a53 cortex-a57 cortex-a72 cortex-a73 cyclone exynos-m3 kryo"),
    (_DOT, "cortex-a55 cortex-a75 neoverse-n1"),
    (
        _HALF,
        "cortex-a76 cortex-a76ae cortex-a77 cortex-a78 cortex-a78ae cortex-a78c cortex-x1 cortex-x1c exynos-m4 "
        "exynos-m5",
    ),
    (_BFLOAT, "neoverse-n2"),
    ((*_BFLOAT, "fullfp16"), "neoverse-v1"),
    ((*_BFLOAT, "fullfp16", "fp16fml"), "cortex-a510 cortex-a710"),
)

#: The features of the CPUs that are named without a list of features beside them.
OF_CPU: dict[str, tuple[str, ...]] = {name: features for features, names in _CPUS for name in names.split()}
