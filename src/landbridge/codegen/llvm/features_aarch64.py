"""Features of AArch64 CPUs that code depends on: LLVM's names, and those of Linux (``/proc/cpuinfo``, hwcap bits).

Sources: LLVM's AArch64Processors.td; Linux, Documentation/arch/arm64/elf_hwcaps.rst.
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
}

_V8 = ("fp-armv8", "neon")
_V8_2 = (*_V8, "lse", "rdm", "fullfp16", "dotprod", "rcpc")
_V8_4 = (*_V8_2, "fp16fml", "rcpc-immo", "complxnum", "jsconv", "flagm")
_V9 = (*_V8_4, "fptoint", "altnzcv", "i8mm", "bf16", "sve", "sve2")

#: The features of the CPUs that are named without a list of features beside them.
OF_CPU: dict[str, tuple[str, ...]] = {
    "generic": _V8,
    "cortex-a34": _V8,
    "cortex-a35": _V8,
    "cortex-a53": _V8,
    "cortex-a57": _V8,
    "cortex-a72": _V8,
    "cortex-a73": _V8,
    "cortex-a55": _V8_2,
    "cortex-a75": _V8_2,
    "cortex-a76": _V8_2,
    "cortex-a76ae": _V8_2,
    "cortex-a77": _V8_2,
    "cortex-a78": _V8_2,
    "cortex-a78ae": _V8_2,
    "cortex-a78c": _V8_2,
    "cortex-x1": _V8_2,
    "neoverse-n1": _V8_2,
    "carmel": (*_V8, "lse", "rdm", "fullfp16"),
    "neoverse-v1": (*_V8_4, "i8mm", "bf16", "sve"),
    "cortex-a510": _V9,
    "cortex-a710": _V9,
    "cortex-a715": _V9,
    "cortex-a720": _V9,
    "cortex-x2": _V9,
    "neoverse-n2": _V9,
    "neoverse-v2": _V9,
    "apple-m1": (*_V8_4, "fptoint", "altnzcv", "sha3"),
}
