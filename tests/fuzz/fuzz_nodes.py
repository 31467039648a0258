"""Models of one node, mostly of operands and attributes that contradict each other: refused with an error of ours, or
compiled to what reads and writes nothing but its own."""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import Any

import numpy as np
import onnx
from draw_node import draw_model
from tests.witnesses.guard_pages import SIDES, GuardedRun

import landbridge as lb
from landbridge.errors import CompileError, InputError, LandbridgeError

INSTRUMENT = ("landbridge",)
SEEDS = [bytes((7 * i + j * j * 31 + i * j) % 256 for j in range(160)) for i in range(24)]

#: Elements of the largest output that is computed.
LARGEST = 1 << 20

Array = np.ndarray[Any, Any]


def compiled(model: onnx.ModelProto, target: str = "llvm") -> Any:
    """The Executable, or None where the model is refused; raises AssertionError where no rule foresaw why."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return lb.compile(model, target)
        except (CompileError, InputError) as error:
            assert "cannot take operands" not in str(error), f"no rule of the operator refuses this: {error}"
            return None


def run_guarded(exe: Any, feeds: dict[str, Array]) -> list[Array]:
    """The outputs, each kernel between pages that it may not touch: once behind its operands, once before them."""
    inputs = [feeds[spec.name] for spec in exe.main.inputs]
    with np.errstate(all="ignore"):
        first, second = (GuardedRun(exe, side)(*inputs) for side in SIDES)
    for a, b in zip(first, second, strict=True):
        assert a.tobytes() == b.tobytes()  # else something is read that is nobody's
    return first


def check(data: bytes) -> None:
    model, feeds = draw_model(data)
    exe = compiled(model)
    if exe is None:
        return
    if exe.is_open:  # an input says sizes: they are refused, or the run has them
        with suppress(LandbridgeError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lb.Session(exe, num_threads=1)(feeds)
    elif all(np.prod(spec.shape) < LARGEST for spec in exe.main.outputs):
        run_guarded(exe, feeds)


if __name__ == "__main__":
    from harness import restart_under_atheris

    restart_under_atheris(__file__)
