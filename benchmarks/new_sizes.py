"""What a new size of an open program costs on a device, beyond a size that came before.

python benchmarks/new_sizes.py [--device opencl:0 vulkan:0] [--rounds 5]

A network of convolutions with an open width runs 24 widths, each as a new one, then as a known one. Times are those of
the thread that runs the Session, waits excluded, so that the device's own work does not count; the result is the
median of the differences, of rounds that each begin with a new Session. ``--own`` binds a Session for each size, as for
programs that a device and a CPU share.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np

import landbridge as lb
from landbridge.session import open_program
from landbridge.targets import Target

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "ocr"))
from tests.open_dimensions import models

WIDTHS = np.random.default_rng(0).permutation(np.arange(8, 200, 8)).tolist()


def run(session: lb.Session, width: int) -> float:
    """Returns the milliseconds of this thread for a run of ``width``."""
    x = np.ones((1, 3, 32, width), np.float32)
    began = time.thread_time_ns()
    session.set_input("x", x)
    session.run()
    return (time.thread_time_ns() - began) / 1e6


def measure(device: lb.Device, executable: lb.Executable) -> tuple[list[float], list[float]]:
    """Returns the milliseconds of each width as a new one, and as one that came before."""
    session = lb.Session(executable, device=device)
    run(session, 256)
    new = [run(session, width) for width in WIDTHS]
    for _ in range(2):
        known = [run(session, width) for width in WIDTHS]
    return new, known


def main() -> None:
    """Print a line for each device."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", nargs="+", default=["opencl:0", "vulkan:0"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--own", action="store_true", help="bind a Session for each size")
    arguments = parser.parse_args()
    if arguments.own:
        open_program.may_be_resized = lambda executable: False
    for name in arguments.device:
        device = lb.device(name)
        dims = {"N": "1..3", "H": "16..64:8", "W": "8..256:8@64"}
        executable = lb.compile(models.convolutions(), Target.from_device(device), dims=dims)
        rounds = [measure(device, executable) for _ in range(arguments.rounds)]
        new, known = (median(each for found in rounds for each in found[side]) for side in (0, 1))
        more = median(a - b for one, other in rounds for a, b in zip(one, other, strict=True))
        print(f"{name}: a new size {new:.2f} ms, a known one {known:.2f} ms, {more:.2f} ms more")


if __name__ == "__main__":
    main()
