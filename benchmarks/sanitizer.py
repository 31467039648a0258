"""What the sanitizer costs on each built-in device: PP-OCR's classifier, made ready and run, as it is and sanitized.

python benchmarks/sanitizer.py
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import landbridge as lb
from landbridge.device import registry

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "examples" / "ocr")]

from measure import interleaved, write  # noqa: E402
from tests.devices.cma.test_cma import Board  # noqa: E402
from wheel_models import CLASSIFY, PP_OCR, wheel_model  # noqa: E402

SHAPE = (1, 3, 48, 192)
DEVICES = ("cpu", "opencl", "vulkan", "cma", "sim:lazy", "sim:scratch", "sim:board")
Row = tuple[str, float, float, float, float, float, float]


def model_for(target: str, **options: object) -> lb.Executable:
    """The classifier, for ``target``."""
    return lb.compile(wheel_model(PP_OCR, CLASSIFY), target, shapes={"x": SHAPE}, on_mismatch="copy", **options)  # type: ignore[arg-type]


def use_of(executable: lb.Executable, device: str) -> tuple[Callable[[], lb.Session], Callable[[], object]]:
    """What makes a Session, and what gives one a picture, runs it and reads the result."""
    frame = np.random.default_rng(0).random(SHAPE, np.float32)

    def created() -> lb.Session:
        return lb.Session(executable, device=device, num_threads=1)

    session = created()

    def use() -> object:
        session.set_input("x", frame)
        session.run()
        return np.asarray(session.get_output(0).to_device("cpu"))

    return created, use


def compared(subject: str, plain: tuple[lb.Executable, str], sanitized: tuple[lb.Executable, str], rounds: int) -> Row:
    """Milliseconds of a run and of making a Session, as it is, sanitized, and their quotient."""
    uses = {"plain": use_of(*plain), "sanitized": use_of(*sanitized)}
    runs = interleaved({name: use for name, (_, use) in uses.items()}, rounds)
    sessions = interleaved({name: created for name, (created, _) in uses.items()}, max(3, rounds // 4))
    cells = [
        cell
        for spent in (runs, sessions)
        for cell in (1e3 * spent["plain"], 1e3 * spent["sanitized"], spent["sanitized"] / spent["plain"])
    ]
    a, b, c, d, e, f = cells
    return subject, a, b, c, d, e, f


def main() -> None:
    rows = []
    # a source of contiguous memory that is there anywhere: files of this process
    known = {"cma": registry.register(Board()).name}
    for device in DEVICES:
        name = known.get(device, device)
        executable = model_for(device if device in ("opencl", "vulkan") else "llvm")
        rows.append(compared(device, (executable, name), (executable, f"sanitize({name})"), 15))
    plain, tested = model_for("llvm"), model_for("llvm", sanitize=True)
    rows.append(compared("cpu, inside of kernels", (plain, "cpu"), (tested, "cpu"), 15))
    head = ("run, ms", "sanitized", "factor", "Session, ms", "sanitized Session", "factor of the Session")
    write("sanitizer", ("device", *head), rows)


if __name__ == "__main__":
    main()
