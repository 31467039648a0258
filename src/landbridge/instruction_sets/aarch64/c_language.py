"""C compilers for AArch64."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from landbridge.instruction_sets.c_language import CLanguage
from landbridge.instruction_sets.cpus import Vectors

#: Features as LLVM spells them, by the macro of each.
_FEATURES = {
    "__ARM_FP": "fp-armv8",
    "__ARM_NEON": "neon",
    "__ARM_FEATURE_ATOMICS": "lse",
    "__ARM_FEATURE_QRDMX": "rdm",
    "__ARM_FEATURE_FP16_VECTOR_ARITHMETIC": "fullfp16",
    "__ARM_FEATURE_FP16_FML": "fp16fml",
    "__ARM_FEATURE_DOTPROD": "dotprod",
    "__ARM_FEATURE_RCPC": "rcpc",
    "__ARM_FEATURE_COMPLEX": "complxnum",
    "__ARM_FEATURE_JCVT": "jsconv",
    "__ARM_FEATURE_SHA3": "sha3",
    "__ARM_FEATURE_MATMUL_INT8": "i8mm",
    "__ARM_FEATURE_BF16": "bf16",
    "__ARM_FEATURE_FRINT": "fptoint",
    "__ARM_FEATURE_SVE": "sve",
    "__ARM_FEATURE_SVE2": "sve2",
}


def _features(macros: Mapping[str, str]) -> Iterator[str]:
    return (name for macro, name in _FEATURES.items() if macro in macros)


def _vectors(macros: Mapping[str, str]) -> Vectors:
    return Vectors(128, 32)


C_LANGUAGE = CLanguage("__aarch64__", ("-mno-outline-atomics",), _features, _vectors, names_cpus=False)
