"""The process that times kernels: programs of one kernel each, run on this machine, on equal random inputs.

In a process of its own, a kernel that crashes does not end the compile, and the compile can stop one that takes long.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from landbridge.dtypes import numpy_dtype
from landbridge.executable.parts import TensorSpec
from landbridge.loader import load
from landbridge.session.session import Session

#: Runs of one program between two of the others.
_RUNS = 3
#: The most rounds over all programs: after so many the least time of each changes little.
_ROUNDS = 40


def serve() -> None:
    """Times the programs that standard input names, as JSON ``{"files", "results", "seconds"}``.

    Writes ``[{"seconds", "digest"}]``, in the order of the files, or ``{"error"}``. The digest is of the first
    ``results`` outputs.
    """
    request = json.loads(sys.stdin.buffer.readline())
    try:
        answer: Any = times(list(map(Path, request["files"])), request["results"], request["seconds"])
    except Exception as error:  # whatever it is, the compile says it
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)


def times(files: list[Path], results: int, seconds: float) -> list[dict[str, object]]:
    """Returns the least seconds of a run of each program, on one thread, and a digest of its first ``results`` outputs.

    The programs run alternately for ``seconds``, each at least once.
    """
    end = time.perf_counter() + seconds
    sessions = [Session(load(file), num_threads=1) for file in files]
    main = sessions[0].executable.main
    inputs = _random(main.inputs)
    least = [float("inf")] * len(files)
    digests = []
    for session in sessions:
        for name, value in inputs.items():
            session.set_input(name, value)
        session.run()
        digest = sha256()
        for spec in main.outputs[:results]:
            digest.update(session.get_output(spec.name, out=np.empty(spec.shape, numpy_dtype(spec.dtype))))
        digests.append(digest.hexdigest())
    for _ in range(_ROUNDS):
        for number, session in enumerate(sessions):
            for _ in range(_RUNS):
                began = time.perf_counter()
                session.run()
                least[number] = min(least[number], time.perf_counter() - began)
        if time.perf_counter() > end:
            break
    return [{"seconds": each, "digest": digest} for each, digest in zip(least, digests, strict=True)]


def _random(specs: tuple[TensorSpec, ...]) -> Mapping[str, Any]:
    """Returns inputs of normal numbers, so that sums in another order have other results; integers are small."""
    rng = np.random.default_rng(0)
    found: dict[str, Any] = {}
    for spec in specs:
        dtype = numpy_dtype(spec.dtype)
        is_integer = dtype.kind in "iub"
        values = rng.integers(0, 2, spec.shape) if is_integer else rng.standard_normal(spec.shape)
        found[spec.name] = values.astype(dtype)
    return found
