"""Runs in a process of its own, under memcpy_counter.c: loads an .lbx, runs it, prints what was copied as JSON.

LD_PRELOAD=counter.so python zero_copy_child.py FILE.lbx THREADS
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable

import numpy as np

import landbridge as lb

counter = ctypes.CDLL(None)
for name in ("counter_calls", "counter_bytes"):
    getattr(counter, name).restype = ctypes.c_long


def counted(action: Callable[[], object]) -> dict[str, int]:
    counter.counter_reset()
    action()
    return {"calls": counter.counter_calls(), "bytes": counter.counter_bytes()}


def main(file: str, threads: int) -> None:
    seen = {}
    lb.Session(lb.load(file))  # what is imported now copies bytes of its own, those of modules
    made: list[lb.Session] = []
    # the least of three: the interpreter's own tables grow now and then, which is a large copy
    loads = [counted(lambda: made.append(lb.Session(lb.load(file), num_threads=threads))) for _ in range(3)]
    seen["load"] = min(loads, key=lambda load: load["bytes"])
    session = made[-1]
    (spec,) = session.inputs
    x = np.random.default_rng(0).standard_normal(spec.shape, np.float32)
    y = np.empty(session.outputs[0].shape, np.float32)
    seen["bind"] = counted(lambda: (session.set_input_zero_copy(0, x), session.set_output_zero_copy(0, y)))
    seen["first_run"] = counted(session.run)
    seen["runs"] = counted(lambda: [session.run() for _ in range(5)])
    seen["read"] = counted(lambda: np.asarray(session.get_output(0)).max())
    seen["call"] = counted(lambda: (session(x), session(x, out=[y])))
    seen["bind_again"] = counted(lambda: (session.set_input_zero_copy(0, x), session.run()))
    seen["set_input"] = counted(lambda: session.set_input(0, x))
    seen["memmove"] = counted(lambda: ctypes.memmove(y.ctypes.data, x.ctypes.data, min(x.nbytes, y.nbytes)))
    print(json.dumps(seen))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
