"""Machines without a code generator, by the names that users try, with the alternative for each."""

from __future__ import annotations

#: The alternative for a CPU without code generation: its own compiler makes code, and the caller runs the kernels.
SOURCE = (
    "`landbridge opt MODEL -t c --emit-source FILE.c` writes the kernels as C11, for a compiler and calls of your own"
)
_PROGRAMS = "programs are for Linux with glibc on x86-64 and AArch64"

_SYSTEMS = {
    "android": f"Android has a C library of its own, and {_PROGRAMS}; {SOURCE}",
    "macos": f"{_PROGRAMS}: nothing is made for macOS; {SOURCE}",
    "ios": f"{_PROGRAMS}: nothing is made for iOS; {SOURCE}",
    "windows": f"{_PROGRAMS}: nothing is made for Windows itself, and a Linux in WSL 2 is as any other; {SOURCE}",
}
_CPUS = dict.fromkeys(("armv7l", "riscv64", "ppc64le", "s390x", "loongarch64", "wasm32"), f"{_PROGRAMS}; {SOURCE}")
_SMALL = f"{_PROGRAMS}, and microcontrollers run none; {SOURCE}"
_GPU = "no kind makes code for {}; the kinds 'opencl' and 'vulkan' do where its driver has OpenCL 1.2 or Vulkan 1.2"

#: Other spellings of the names.
_ALSO = {
    "arm": "armv7l", "armhf": "armv7l", "armv7": "armv7l", "armv7a": "armv7l", "armv6l": "armv7l", "thumbv7": "armv7l",
    "riscv": "riscv64", "riscv32": "riscv64", "wasm": "wasm32",
    "darwin": "macos", "osx": "macos", "macosx": "macos", "mac": "macos", "win": "windows", "win32": "windows",
    "win64": "windows", "msvc": "windows",
}  # fmt: skip
_CONTROLLERS = (
    "esp32",
    "esp32s3",
    "xtensa",
    "stm32",
    "arduino",
    "cortex-m4",
    "cortex-m7",
    "cortex-m55",
    "rp2040",
    "avr",
)
_GPUS = ("cuda", "nvidia", "nvptx", "tensorrt", "rocm", "hip", "amdgpu", "metal", "mps", "sycl", "webgpu", "directml")


def instead_of(name: str) -> str:
    """Returns the alternative for the machine called ``name``, as a clause; empty if the name is not known."""
    plain = name.strip().lower()
    plain = _ALSO.get(plain, plain)
    if plain in _CONTROLLERS:
        return _SMALL
    if plain in _GPUS:
        return _GPU.format(name)
    return _SYSTEMS.get(plain) or _CPUS.get(plain, "")


def instead_of_triple(parts: list[str]) -> str:
    """Returns the alternative for the first known part of a triple, systems before instruction sets.

    ``parts`` may have versions, as in ``macos14.2``.
    """
    names = [part.rstrip("0123456789.") if not part.startswith(("esp", "win", "arm")) else part for part in parts]
    known = [alternative for name in [*names[::-1], *parts] if (alternative := instead_of(name))]
    return known[0] if known else SOURCE
