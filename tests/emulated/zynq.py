"""The emulated machine with the processor and the memory of PYNQ-Z1 and Z2: QEMU's ``xilinx-zynq-a9``.

Its memory is a file, so that this process reads and writes at physical addresses what the logic of the FPGA would.
Debian's kernel has no driver for the Zynq's own devices, and no device tree of one. It boots by a tree of ours
(``zynq.dts``), and its first process writes to the UART itself (``guest/zynq_console.py``).
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.emulated.kernel import Kernel
from tests.emulated.machine import Outcome, emulate

#: What DE10-Nano has; PYNQ-Z2 has half of it.
MEMORY_BYTES = 1 << 30
#: The contiguous area is memory that the kernel maps all the time, as all of PYNQ-Z2's is: below 0x2f00_0000.
_BOOT = "rdinit=/init cma=64M@0-0x2f000000 panic=-1 oops=panic landbridge.console=zynq_console"
_SOURCE = Path(__file__).with_name("zynq.dts")


def make_memory(path: Path) -> Path:
    """Returns the file ``path``, made or emptied: the machine's memory from physical address 0 on."""
    with path.open("wb") as file:
        file.truncate(MEMORY_BYTES)
    return path


def run(kernel: Kernel, ramdisk: Path, memory: Path, program: str, *arguments: str, timeout: float = 900) -> Outcome:
    """Boot in ``memory``, run ``python -m program arguments``, turn off. What is in ``memory`` stays there, unless the
    kernel or the ramdisk is loaded there."""
    tree = ramdisk.with_suffix(".dtb")
    subprocess.run(["dtc", "-q", "-O", "dtb", "-o", str(tree), str(_SOURCE)], check=True)
    words = ",".join(("-m", program, *arguments))
    options = f"id=memory,size={MEMORY_BYTES},mem-path={memory},share=on"
    command = [
        *(*kernel.architecture.machine, "-object", f"memory-backend-file,{options}", "-m", f"{MEMORY_BYTES >> 20}M"),
        *("-nographic", "-no-reboot", "-nodefaults", "-serial", "null", "-serial", "stdio"),
        *("-kernel", str(kernel.image), "-dtb", str(tree), "-initrd", str(ramdisk)),
        *("-append", f"{_BOOT} landbridge.run={words}"),
    ]
    return emulate(command, timeout)
