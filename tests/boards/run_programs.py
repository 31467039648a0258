"""What runs on the board: for each line of standard input the program of that name, on as many threads as it says.

``NAME.lbx`` takes the arrays of ``NAME.npz``, in order; results go to ``NAME.out.npz``, and a line says what happened.
"""

from __future__ import annotations

import sys

import numpy as np

import landbridge as lb
from landbridge.dtypes import stored_dtype


def run(name: str, threads: int) -> None:
    """Run one program."""
    session = lb.Session(lb.load(f"{name}.lbx"), num_threads=threads)
    with np.load(f"{name}.npz") as given:
        arrays = [given[key] for key in given.files]
    inputs = [
        array if spec.dtype == array.dtype.name else array.view(stored_dtype(spec.dtype))
        for array, spec in zip(arrays, session.inputs, strict=True)
    ]
    outputs = [np.asarray(output) for output in session(*inputs)]
    np.savez(f"{name}.out.npz", *(o.view(np.uint16) if o.dtype.kind == "V" else o for o in outputs))


for line in sys.stdin:
    words = line.split()
    try:
        run(words[0], int(words[1]))
    except Exception as error:
        print(f"{type(error).__name__}: {error}".replace("\n", " "), flush=True)
    else:
        print("done", flush=True)
