"""The first process of the emulated machine: makes it a Linux, runs a program, says how it ended, and turns it off.

The kernel's command line names the program: ``landbridge.run=MODULE`` is run as ``python -m``. Where the
kernel has no driver for a console, ``landbridge.console=MODULE`` names what opens one.
"""

import ctypes
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

FINIT_MODULE = {"x86_64": 313, "aarch64": 273, "armv7l": 379}[os.uname().machine]  # the number of that system call

libc = ctypes.CDLL(None, use_errno=True)
for kind, where in (("devtmpfs", "/dev"), ("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/tmp"), ("tmpfs", "/run")):
    if libc.mount(kind.encode(), where.encode(), kind.encode(), 0, None):
        raise SystemExit(f"cannot mount {where}: {os.strerror(ctypes.get_errno())}")
words = dict(word.partition("=")[::2] for word in Path("/proc/cmdline").read_text().split())
if "landbridge.console" in words:
    sys.path.append("/packages")
    console, wait_until_shown = import_module(words["landbridge.console"]).open_console()
else:
    console, wait_until_shown = os.open("/dev/console", os.O_RDWR), None
for number in (0, 1, 2):
    os.dup2(console, number)
print("LANDBRIDGE started", flush=True)
Path("/dev/shm").mkdir()
for module in sorted(Path("/modules").glob("*.ko")):
    parameters = module.with_suffix(".txt").read_bytes()
    with module.open("rb") as file:
        if libc.syscall(FINIT_MODULE, file.fileno(), parameters, 0):
            print(f"cannot load {module.name}: {os.strerror(ctypes.get_errno())}", flush=True)
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
if wait_until_shown is not None:
    for number in (0, 1, 2, console):
        os.close(number)
    wait_until_shown()
os.sync()
libc.reboot(0x4321FEDC)  # LINUX_REBOOT_CMD_POWER_OFF
