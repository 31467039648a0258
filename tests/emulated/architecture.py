"""The instruction sets whose machines are emulated: what differs between them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Architecture:
    """What Debian, QEMU, the kernel and its build call one instruction set, and how its machine boots.

    ``machine`` is QEMU's command up to the size of the memory; ``boot`` are words for the kernel's command line.
    ``counted``: whether QEMU counts instructions of this machine reliably (``-icount``). ``make`` builds modules.
    ``flavor``: Debian's name of the kernel, None for the one for emulated machines. ``tools``: programs that are needed
    besides QEMU and the compiler.
    """

    debian: str
    cache: str
    machine: tuple[str, ...]
    console: str
    boot: tuple[str, ...] = ()
    counted: bool = True
    make: tuple[str, ...] = ()
    flavor: str | None = None
    tools: tuple[str, ...] = ()

    @property
    def packages(self) -> tuple[str, str]:
        """Debian's metapackages of the kernel, and of what builds modules for it."""
        flavor = self.flavor or f"cloud-{self.debian}"
        return f"linux-image-{flavor}", f"linux-headers-{flavor}"

    @property
    def programs(self) -> tuple[str, ...]:
        """The programs that emulation needs: QEMU, and the cross compiler where there is one."""
        compilers = [f"{word.partition('=')[2]}gcc" for word in self.make if word.startswith("CROSS_COMPILE=")]
        return (self.machine[0], *compilers, *self.tools)


AMD64 = Architecture(
    debian="amd64",
    cache="linux",
    machine=("qemu-system-x86_64", "-accel", "tcg", "-machine", "q35", "-cpu", "max"),
    console="ttyS0",
    # The flags after cmpxchg16b, which the kernel's allocators use where they have it, are wrong in QEMU 7.2 now and
    # then.
    boot=("clearcpuid=cx16",),
)
ARM64 = Architecture(
    debian="arm64",
    cache="linux-arm64",
    machine=("qemu-system-aarch64", "-accel", "tcg", "-machine", "virt", "-cpu", "cortex-a72"),
    console="ttyAMA0",
    counted=False,
    make=("ARCH=arm64", "CROSS_COMPILE=aarch64-linux-gnu-"),
)
#: The processor of PYNQ-Z1 and Z2; ``tests/emulated/zynq.py`` boots it.
ZYNQ = Architecture(
    debian="armhf",
    cache="linux-armhf",
    machine=("qemu-system-arm", "-accel", "tcg", "-machine", "xilinx-zynq-a9,memory-backend=memory"),
    console="",
    counted=False,
    make=("ARCH=arm", "CROSS_COMPILE=arm-linux-gnueabihf-"),
    flavor="armmp",
    tools=("dtc",),
)
