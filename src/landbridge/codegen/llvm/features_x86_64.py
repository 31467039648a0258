"""Features of x86-64 CPUs that code depends on: LLVM's names, and the flags of ``/proc/cpuinfo``."""

from __future__ import annotations

#: LLVM feature -> flag, for the features that change which instructions ordinary code may contain.
FLAGS = {
    "sse3": "pni",
    "ssse3": "ssse3",
    "sse4.1": "sse4_1",
    "sse4.2": "sse4_2",
    "sse4a": "sse4a",
    "popcnt": "popcnt",
    "cx16": "cx16",
    "movbe": "movbe",
    "lzcnt": "abm",
    "bmi": "bmi1",
    "bmi2": "bmi2",
    "adx": "adx",
    "aes": "aes",
    "vaes": "vaes",
    "pclmul": "pclmulqdq",
    "vpclmulqdq": "vpclmulqdq",
    "gfni": "gfni",
    "sha": "sha_ni",
    "avx": "avx",
    "avx2": "avx2",
    "fma": "fma",
    "f16c": "f16c",
    "avxvnni": "avx_vnni",
    "avx512f": "avx512f",
    "avx512bw": "avx512bw",
    "avx512cd": "avx512cd",
    "avx512dq": "avx512dq",
    "avx512vl": "avx512vl",
    "avx512ifma": "avx512ifma",
    "avx512vbmi": "avx512vbmi",
    "avx512vbmi2": "avx512_vbmi2",
    "avx512vnni": "avx512_vnni",
    "avx512bitalg": "avx512_bitalg",
    "avx512vpopcntdq": "avx512_vpopcntdq",
    "avx512bf16": "avx512_bf16",
    "avx512fp16": "avx512_fp16",
}

_V2 = ("sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "cx16")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_ICE = (
    *_V4,
    "avx512ifma",
    "avx512vbmi",
    "avx512vbmi2",
    "avx512vnni",
    "avx512bitalg",
    "avx512vpopcntdq",
    "gfni",
)

#: The features of the CPUs that are named without a list of features beside them.
OF_CPU: dict[str, tuple[str, ...]] = {
    "generic": (),
    "x86-64": (),
    "x86-64-v2": _V2,
    "nehalem": _V2,
    "x86-64-v3": _V3,
    "haswell": _V3,
    "skylake": _V3,
    "alderlake": _V3,
    "znver1": _V3,
    "znver2": _V3,
    "znver3": _V3,
    "x86-64-v4": _V4,
    "skylake-avx512": _V4,
    "cascadelake": (*_V4, "avx512vnni"),
    "icelake-client": _ICE,
    "icelake-server": _ICE,
    "sapphirerapids": (*_ICE, "avx512bf16", "avx512fp16"),
    "znver4": (*_ICE, "avx512bf16"),
    "znver5": (*_ICE, "avx512bf16", "avxvnni"),
}
