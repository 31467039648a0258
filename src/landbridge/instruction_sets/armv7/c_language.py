"""C compilers for ARMv7-A (macros: Arm C Language Extensions, 2023Q2, chapter 6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from landbridge.instruction_sets.c_language import CLanguage
from landbridge.instruction_sets.cpus import Vectors

#: Features as LLVM spells them, by the macro of each.
_FEATURES = {
    "__ARM_FP": ("vfp3",),
    "__ARM_NEON": ("neon", "d32"),
    "__ARM_FEATURE_FMA": ("vfp4",),
    "__ARM_FEATURE_IDIV": ("hwdiv-arm",),
    "__ARM_FEATURE_CRC32": ("crc",),
}
#: Values of ``__ARM_ARCH_PROFILE`` for processors that run Linux: compilers write the letter or its number.
_PROFILES = ("65", "'A'")
_OLDEST = 7


def _features(macros: Mapping[str, str]) -> Iterator[str]:
    return (name for macro, names in _FEATURES.items() if macro in macros for name in names)


def _vectors(macros: Mapping[str, str]) -> Vectors:
    return Vectors(128, 16)


def _refusal(macros: Mapping[str, str]) -> str:
    version, profile = macros.get("__ARM_ARCH", "0"), macros.get("__ARM_ARCH_PROFILE", "none")
    if not version.isdecimal() or int(version) < _OLDEST or profile not in _PROFILES:
        return (
            f"makes code for profile {profile} of version {version} of Arm's architecture, and programs are for "
            "profile A of version 7 and newer; legal: -mcpu=armv7-a+simd"
        )
    if "__ARM_PCS_VFP" not in macros:
        return (
            "passes floats in integer registers, and programs for armv7 pass them in those of floats; legal: a "
            "compiler of the hard-float ABI, as in -compiler=arm-linux-gnueabihf-gcc"
        )
    return ""


C_LANGUAGE = CLanguage(
    "__arm__",
    ("-marm",),
    _features,
    _vectors,
    names_cpus=False,
    generic=("-mfpu=neon",),
    further="defined(__ARM_PCS_VFP) && __ARM_ARCH >= 7 && __ARM_ARCH_PROFILE == 'A'",
    refusal=_refusal,
)
