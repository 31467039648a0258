"""C compilers for x86-64."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from landbridge.instruction_sets.c_language import CLanguage
from landbridge.instruction_sets.cpus import Vectors

#: Features as compilers spell them after ``-m``; each has a macro of its name.
_FEATURES = (
    "sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "aes", "pclmul", "avx", "avx2", "fma", "f16c", "bmi", "bmi2",
    "lzcnt", "movbe", "adx", "sha", "gfni", "vaes", "vpclmulqdq", "avxvnni", "avx512f", "avx512bw", "avx512cd",
    "avx512dq", "avx512vl", "avx512ifma", "avx512vbmi", "avx512vbmi2", "avx512vnni", "avx512bitalg",
    "avx512vpopcntdq", "avx512bf16",
)  # fmt: skip


def _features(macros: Mapping[str, str]) -> Iterator[str]:
    return (name for name in _FEATURES if f"__{name.upper().replace('.', '_')}__" in macros)


def _vectors(macros: Mapping[str, str]) -> Vectors:
    if "__AVX512F__" in macros:
        return Vectors(512, 32)
    return Vectors(256 if "__AVX__" in macros else 128, 16)


C_LANGUAGE = CLanguage("__x86_64__", ("-fcf-protection=none",), _features, _vectors, takes_features=True)
