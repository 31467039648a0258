"""The first process of the emulated machine: makes it a Linux, runs a program, says how it ended, and turns it off.

The kernel's command line names the program: ``landbridge.run=MODULE`` is run as ``python -m``.
"""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

libc = ctypes.CDLL(None, use_errno=True)
for kind, where in (("devtmpfs", "/dev"), ("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/tmp"), ("tmpfs", "/run")):
    if libc.mount(kind.encode(), where.encode(), kind.encode(), 0, None):
        raise SystemExit(f"cannot mount {where}: {os.strerror(ctypes.get_errno())}")
console = os.open("/dev/ttyS0", os.O_RDWR)
for number in (0, 1, 2):
    os.dup2(console, number)
print("LANDBRIDGE started", flush=True)
Path("/dev/shm").mkdir()
for module in sorted(Path("/modules").glob("*.ko")):
    parameters = module.with_suffix(".txt").read_bytes()
    with module.open("rb") as file:
        if libc.syscall(313, file.fileno(), parameters, 0):  # finit_module of x86-64
            print(f"cannot load {module.name}: {os.strerror(ctypes.get_errno())}", flush=True)
words = dict(word.partition("=")[::2] for word in Path("/proc/cmdline").read_text().split())
environment = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/tmp",
    "PYTHONPATH": "/packages",
    "PYTHONDONTWRITEBYTECODE": "1",
}
try:
    code = subprocess.run([sys.executable, *words["landbridge.run"].split(",")], env=environment, cwd="/tmp").returncode
except OSError as error:
    print(error)
    code = 1
print(f"LANDBRIDGE ended {code}", flush=True)
os.sync()
libc.reboot(0x4321FEDC)  # LINUX_REBOOT_CMD_POWER_OFF
