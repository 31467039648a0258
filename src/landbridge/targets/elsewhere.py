"""Machines without a code generator, by the names that users try, with the alternative for each."""

from __future__ import annotations

from landbridge.instruction_sets.registry import usable

#: The alternative for a CPU without code generation: its own compiler makes code, and the caller runs the kernels.
SOURCE = (
    "`landbridge opt MODEL -t c --emit-source FILE.c` writes the kernels as C11, for a compiler and calls of your own"
)
_PROGRAMS = "programs are for Linux with glibc on x86-64, AArch64, ARMv7 and RISC-V of 64 bits"

_SYSTEMS = {
    "android": f"Android has a C library of its own, and {_PROGRAMS}; {SOURCE}",
    "macos": f"{_PROGRAMS}: nothing is made for macOS; {SOURCE}",
    "ios": f"{_PROGRAMS}: nothing is made for iOS; {SOURCE}",
    "windows": f"{_PROGRAMS}: nothing is made for Windows itself, and a Linux in WSL 2 is as any other; {SOURCE}",
}
_CPUS = dict.fromkeys(("armv6l", "riscv32", "ppc64le", "loongarch64", "wasm32"), f"{_PROGRAMS}; {SOURCE}")
_CPUS["armv7l"] = "name its CPU, as in 'llvm -mtriple=armv7-linux-gnueabihf -mcpu=cortex-a9', or a board, as 'pynq-z2'"
_CPUS["riscv64"] = (
    "name its CPU, as in 'llvm -mtriple=riscv64-linux-gnu -mcpu=generic', with vectors -mattr=+v, or a board, as "
    "'visionfive-2'"
)
_BIG_ENDIAN = "kernels are written for little-endian CPUs alone, and {} is big-endian; legal: one of another machine"
#: The alternative for a microcontroller.
WITHOUT_SYSTEM = (
    "a microcontroller runs C that needs no operating system: `landbridge export MODEL --c DIR -t freestanding`, or "
    "-t cortex-m4 and others that `landbridge targets` lists"
)
_GPU = "no kind makes code for {}; the kinds 'opencl' and 'vulkan' do where its driver has OpenCL 1.2 or Vulkan 1.2"

#: Other spellings of the names.
_ALSO = {
    "arm": "armv7l", "armhf": "armv7l", "armv7": "armv7l", "armv7a": "armv7l",
    "riscv": "riscv64", "rv64gc": "riscv64", "powerpc64le": "ppc64le", "wasm": "wasm32",
    "darwin": "macos", "osx": "macos", "macosx": "macos", "mac": "macos", "win": "windows", "win32": "windows",
    "win64": "windows", "msvc": "windows",
}  # fmt: skip
_BIG = ("s390x", "ppc64", "powerpc64", "powerpc", "aarch64_be", "armeb", "mips", "mips64", "sparc64")
_CONTROLLERS = (
    "esp32", "esp32s3", "xtensa", "stm32", "arduino", "rp2040", "rp2350", "avr", "cortex-m0", "cortex-m3",
)  # fmt: skip
_GPUS = ("cuda", "nvidia", "nvptx", "tensorrt", "rocm", "hip", "amdgpu", "metal", "mps", "sycl", "webgpu", "directml")


def instead_of(name: str) -> str:
    """Returns the alternative for the machine called ``name``, as a clause; empty if the name is not known."""
    plain = name.strip().lower()
    plain = _ALSO.get(plain, plain)
    if plain in _BIG:
        return _BIG_ENDIAN.format(name)
    if plain in _CONTROLLERS or plain.startswith("thumb"):
        return WITHOUT_SYSTEM
    if plain in _GPUS:
        return _GPU.format(name)
    return _SYSTEMS.get(plain) or _CPUS.get(plain, "") or _as_option(plain)


def _as_option(name: str) -> str:
    """Returns how to name a target by its triple or CPU, as a clause, where ``name`` is one; else an empty text."""
    if "-linux-" in name:
        return f"a triple is an option, beside that of a CPU, as in 'llvm -mtriple={name} -mcpu=generic'"
    for each in usable():
        if name in each.cpus.features_of and name != "generic":
            return f"a CPU is an option, as in 'llvm -mtriple={each.name}-linux-{each.environment} -mcpu={name}'"
    return ""


def instead_of_triple(parts: list[str]) -> str:
    """Returns the alternative for the first known part of a triple, systems before instruction sets.

    ``parts`` may have versions, as in ``macos14.2``.
    """
    names = [part.rstrip("0123456789.") if not part.startswith(("esp", "win", "arm")) else part for part in parts]
    known = [alternative for name in [*names[::-1], *parts] if (alternative := instead_of(name))]
    return known[0] if known else SOURCE
