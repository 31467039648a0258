"""Finds the system's C compiler and queries it for facts about a CPU."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from functools import cache

from landbridge.process.helper_process import environment, find_program

#: Compiler names in the order of the search.
NAMES = ("cc", "gcc", "clang")

#: Features of x86 as compilers spell them after ``-m``; each has a macro of its name.
_X86 = (
    "sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "aes", "pclmul", "avx", "avx2", "fma", "f16c", "bmi", "bmi2",
    "lzcnt", "movbe", "adx", "sha", "gfni", "vaes", "vpclmulqdq", "avxvnni", "avx512f", "avx512bw", "avx512cd",
    "avx512dq", "avx512vl", "avx512ifma", "avx512vbmi", "avx512vbmi2", "avx512vnni", "avx512bitalg",
    "avx512vpopcntdq", "avx512bf16",
)  # fmt: skip
#: Features of AArch64 as LLVM spells them, by the macro of each.
_ARM = {
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
_MACHINES = {"__x86_64__": "x86_64", "__aarch64__": "aarch64", "__riscv": "riscv64"}


def find(name: str = "") -> str | None:
    """Returns the path of compiler ``name``, or of the first one of ``NAMES`` that exists; None if there is none."""
    return next((path for known in ((name,) if name else NAMES) if (path := find_program(known))), None)


def machine_flags(cpu: str, features: Sequence[str]) -> tuple[str, ...]:
    """Returns the compiler options for ``cpu`` with ``features`` (``+name`` / ``-name``); ``generic`` is every CPU of
    its kind."""
    march = () if cpu == "generic" else (f"-march={cpu}",)
    return (*march, *(f"-m{'' if f.startswith('+') else 'no-'}{f.lstrip('+-')}" for f in features))


@cache
def macros(path: str, flags: tuple[str, ...]) -> Mapping[str, str]:
    """Returns the macros that the compiler predefines under ``flags``; raises ValueError with its message if it refuses
    them."""
    command = [path, *flags, "-dM", "-E", "-x", "c", "/dev/null"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment())
    except OSError as error:
        raise ValueError(f"{path} does not run: {error}") from error
    if done.returncode != 0:
        raise ValueError((done.stderr.strip().splitlines() or [f"status {done.returncode}"])[0])
    words = (line.split(maxsplit=2) for line in done.stdout.splitlines())
    return {word[1]: word[2] if len(word) > 2 else "" for word in words if len(word) > 1}


def isa(defined: Mapping[str, str]) -> str:
    """Returns the instruction set of the compiled code: ``x86_64``, ``aarch64``, ``riscv64``, or ``unknown``."""
    return next((name for macro, name in _MACHINES.items() if macro in defined), "unknown")


def features(defined: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the features that code may use, as LLVM spells them, sorted."""
    arm = (name for macro, name in _ARM.items() if macro in defined and isa(defined) == "aarch64")
    x86 = (name for name in _X86 if f"__{name.upper().replace('.', '_')}__" in defined)
    return tuple(sorted((*arm, *x86)))
