"""CPU features that x86-64 code depends on: LLVM's names, and the flags of ``/proc/cpuinfo``.

Source: LLVM's X86TargetParser.cpp (22), whose ``clang -march=NAME -dM -E`` a test compares.
"""

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
_AVX = (*_V2, "avx")
_BULLDOZER = (*_AVX, "lzcnt")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_CANNON = (*_V4, "avx512ifma", "avx512vbmi")
_ICE = (*_CANNON, "avx512vbmi2", "avx512vnni", "avx512bitalg", "avx512vpopcntdq", "gfni")
_RAPIDS = (*_ICE, "avx512bf16", "avx512fp16", "avxvnni")

#: CPUs by LLVM's names, with the features that they have in common; without ciphers, sums with carries and instructions
#: of one maker, which no code has that was not written for them.
_CPUS: tuple[tuple[tuple[str, ...], str], ...] = (
    ((), "generic x86-64 athlon-fx athlon64 k8 opteron"),
    (("sse3",), "athlon64-sse3 k8-sse3 opteron-sse3"),
    (("sse3", "cx16"), "nocona"),
    (("sse3", "ssse3", "cx16"), "core2"),
    (("sse3", "ssse3", "cx16", "movbe"), "atom bonnell"),
    (("sse3", "ssse3", "sse4.1", "cx16"), "penryn"),
    (("sse3", "popcnt", "cx16", "lzcnt"), "amdfam10 barcelona"),
    (("sse3", "ssse3", "popcnt", "cx16", "lzcnt"), "btver1"),
    (_V2, "x86-64-v2 corei7 nehalem westmere"),
    ((*_V2, "movbe"), "silvermont slm goldmont goldmont-plus"),
    ((*_V2, "movbe", "gfni"), "tremont"),
    (_AVX, "corei7-avx sandybridge"),
    ((*_AVX, "f16c"), "core-avx-i ivybridge"),
    (_BULLDOZER, "bdver1"),
    ((*_BULLDOZER, "bmi", "f16c", "fma"), "bdver2 bdver3"),
    ((*_BULLDOZER, "bmi", "f16c", "movbe"), "btver2"),
    (_V3, "x86-64-v3 core-avx2 haswell broadwell skylake bdver4 znver1 znver2 znver3"),
    (
        (*_V3, "gfni", "avxvnni"),
        "alderlake arrowlake arrowlake-s clearwaterforest gracemont grandridge lunarlake meteorlake pantherlake "
        "raptorlake sierraforest wildcatlake",
    ),
    ((*_V3, "avx512f", "avx512cd"), "knl"),
    ((*_V3, "avx512f", "avx512cd", "avx512vpopcntdq"), "knm"),
    (_V4, "x86-64-v4 skylake-avx512 skx"),
    ((*_V4, "avx512vnni"), "cascadelake"),
    ((*_V4, "avx512vnni", "avx512bf16"), "cooperlake"),
    (_CANNON, "cannonlake"),
    (_ICE, "icelake-client icelake-server rocketlake tigerlake"),
    ((*_ICE, "avx512bf16"), "znver4"),
    ((*_ICE, "avx512bf16", "avxvnni"), "znver5"),
    (_RAPIDS, "sapphirerapids emeraldrapids graniterapids graniterapids-d diamondrapids novalake"),
)

#: The features of the CPUs that are named without a list of features beside them.
OF_CPU: dict[str, tuple[str, ...]] = {name: features for features, names in _CPUS for name in names.split()}
