"""CPU features that AArch64 code depends on: LLVM's names, and those of Linux (``/proc/cpuinfo``, hwcap bits).

Sources: LLVM's AArch64Processors.td (22), whose ``clang --print-enabled-extensions`` a test compares; Linux,
Documentation/arch/arm64/elf_hwcaps.rst.
"""

from __future__ import annotations

#: LLVM feature -> flag, for the features that change which instructions ordinary code may contain. Ciphers and
#: checksums are not among them: no code has those instructions, and boards are sold without (Raspberry Pi 4).
FLAGS = {
    "fp-armv8": "fp",
    "neon": "asimd",
    "lse": "atomics",
    "rdm": "asimdrdm",
    "fullfp16": "fphp",
    "fp16fml": "asimdfhm",
    "dotprod": "asimddp",
    "rcpc": "lrcpc",
    "rcpc-immo": "ilrcpc",
    "complxnum": "fcma",
    "jsconv": "jscvt",
    "sha3": "sha3",
    "i8mm": "i8mm",
    "bf16": "bf16",
    "fptoint": "frint",
    "altnzcv": "flagm2",
    "flagm": "flagm",
    "sve": "sve",
    "sve2": "sve2",
    "cssc": "cssc",
    "mops": "mops",
    "rcpc3": "lrcpc3",
    "faminmax": "faminmax",
}

_V8 = ("fp-armv8", "neon")
_V8_1 = (*_V8, "lse", "rdm")
_V8_2 = (*_V8_1, "fullfp16")
_DOT = (*_V8_2, "dotprod", "rcpc")
_COMPLEX = ("complxnum", "jsconv")
_V8_4 = (*_DOT, "fp16fml", "rcpc-immo", *_COMPLEX, "flagm")
_V8_5 = (*_V8_4, "fptoint", "altnzcv")
_V8_6 = (*_V8_5, "i8mm", "bf16")
_V9 = (*_V8_6, "sve", "sve2")

#: CPUs by LLVM's names, with the features that they have in common.
_CPUS: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        _V8,
        "apple-a7 apple-a8 apple-a9 cortex-a34 cortex-a35 cortex-a53 cortex-a57 cortex-a72 cortex-a73 cyclone "
        "exynos-m3 generic kryo thunderx thunderxt81 thunderxt83 thunderxt88",
    ),
    ((*_V8, "rdm"), "apple-a10 falkor"),
    (_V8_1, "thunderx2t99"),
    ((*_V8_1, "rcpc", *_COMPLEX), "thunderx3t110"),
    ((*_V8_1, "dotprod", "rcpc", "rcpc-immo", *_COMPLEX, "flagm"), "saphira"),
    (_V8_2, "apple-a11 carmel"),
    ((*_V8_2, "dotprod"), "exynos-m4 exynos-m5"),
    ((*_V8_2, "complxnum", "sve"), "a64fx"),
    ((*_V8_2, "rcpc", *_COMPLEX), "apple-a12 apple-s4 apple-s5"),
    ((*_V8_2, "fp16fml", "dotprod", *_COMPLEX), "tsv110"),
    (
        _DOT,
        "cortex-a55 cortex-a65 cortex-a65ae cortex-a75 cortex-a76 cortex-a76ae cortex-a77 cortex-a78 cortex-a78ae "
        "cortex-x1 neoverse-e1 neoverse-n1",
    ),
    ((*_DOT, "flagm"), "cortex-a78c"),
    ((*_DOT, "rcpc-immo", "flagm"), "cortex-x1c"),
    (_V8_4, "cortex-r82 cortex-r82ae"),
    ((*_V8_4, "sha3"), "apple-a13 apple-s6 apple-s7 apple-s8"),
    ((*_V8_4, "sha3", "i8mm", "bf16", "sve"), "neoverse-512tvb neoverse-v1"),
    ((*_V8_5, "sha3"), "apple-a14 apple-m1"),
    (
        (*_V8_6, "sha3"),
        "ampere1 ampere1a apple-a15 apple-a16 apple-a17 apple-a18 apple-m2 apple-m3 apple-m4 apple-s9 apple-s10 "
        "oryon-1",
    ),
    ((*_V8_6, "sha3", "cssc"), "ampere1b apple-a19 apple-m5"),
    (
        _V9,
        "cobalt-100 cortex-a320 cortex-a510 cortex-a520 cortex-a520ae cortex-a710 cortex-a715 cortex-a720 "
        "cortex-a720ae cortex-a725 cortex-x2 cortex-x3 cortex-x4 cortex-x925 neoverse-n2 neoverse-n3 neoverse-v2 "
        "neoverse-v3 neoverse-v3ae",
    ),
    ((*_V9, "mops", "rcpc3"), "c1-nano c1-premium c1-pro c1-ultra"),
    ((*_V9, "sha3"), "gb10 grace"),
    ((*_V9, "sha3", "faminmax"), "olympus"),
    ((*_V9, "sha3", "faminmax", "cssc"), "ampere1c"),
    ((*_V9, "sha3", "faminmax", "mops"), "fujitsu-monaka"),
)

#: The features of the CPUs that are named without a list of features beside them.
OF_CPU: dict[str, tuple[str, ...]] = {name: features for features, names in _CPUS for name in names.split()}
