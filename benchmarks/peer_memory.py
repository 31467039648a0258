"""What loading a model and running it takes of memory at most, compared with onnxruntime and OpenVINO.

python benchmarks/peer_memory.py [--only OCR] [--write]      (needs openvino)

Each runtime loads and runs each model of ``peers.py`` in a process of its own, which has run a small one before, so
that a runtime's own code is not counted: the largest resident memory (``VmHWM`` of /proc/self/status, begun anew by
``5`` in /proc/self/clear_refs, proc(5)) less what was resident before.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from measure import write
from peers import MODELS, PEERS, inputs_of

import landbridge as lb
from landbridge.cli.peers import peers_named

#: Run first, and not measured.
_SMALL = "PP-OCRv4 cls"
_RUNS = 5
_OURS = "landbridge"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a part of the names of the models")
    parser.add_argument("--write", action="store_true", help="write the table")
    parser.add_argument("--child", nargs=3, metavar=("RUNTIME", "MODEL", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        runtime, name, folder = options.child
        print(grown(runtime, name, Path(folder)))
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        _compiled(_SMALL, Path(folder))
        for name in MODELS:
            if options.only in name and name != _SMALL:
                rows.append(row(name, Path(folder)))
                print(*rows[-1], flush=True)
    least = [one[2] <= min(peer for peer in one[3:5] if peer) for one in rows]
    rows.append([f"at most the leaner peer's on {sum(least)} of {len(least)}", "", "", "", "", ""])
    if options.write:
        columns = ["model", "file MB", "ours MB", "onnxruntime MB", "OpenVINO MB", "leaner peer / ours"]
        write("peer_memory", columns, rows)


def row(name: str, folder: Path) -> list[object]:
    """The model, MB of its file, MB of each runtime, and the leaner peer's over ours."""
    _compiled(name, folder)
    found: list[float] = []
    for runtime in (_OURS, *PEERS):
        command = [sys.executable, __file__, "--child", runtime, name, str(folder)]
        done = subprocess.run(command, capture_output=True, text=True)
        found.append(float(done.stdout.split()[-1]) if done.returncode == 0 else 0.0)
    _file(name, folder).unlink()
    return [
        name,
        MODELS[name].path().stat().st_size / 1e6,
        *found,
        min(peer for peer in found[1:] if peer) / max(found[0], 0.1),
    ]


def grown(runtime: str, name: str, folder: Path) -> float:
    """MB by which this process grows at most while it loads and runs ``name``."""
    small, tried = (inputs_of(lb.load(_file(each, folder)), MODELS[each]) for each in (_SMALL, name))
    run(runtime, _SMALL, small, folder)
    before = _resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    retained = run(runtime, name, tried, folder)
    del retained
    return (_resident("VmHWM") - before) / 1e6


def run(runtime: str, name: str, inputs: dict[str, np.ndarray], folder: Path) -> object:
    """Load and run model ``name``; what it returns keeps it loaded."""
    call: Callable[[], object]
    if runtime == _OURS:
        session = lb.Session(lb.load(_file(name, folder)), num_threads=1)
        for key, array in inputs.items():
            session.set_input_zero_copy(key, array)
        call = session.run
    else:
        call = peers_named([runtime])[runtime](MODELS[name].path(), inputs, 1).run
    for _ in range(_RUNS):
        call()
    return call


def _file(name: str, folder: Path) -> Path:
    return folder / (re.sub(r"\W+", "_", name) + ".lbx")


def _compiled(name: str, folder: Path) -> None:
    lb.compile(MODELS[name].path(), shapes=MODELS[name].shapes).save(_file(name, folder))


def _resident(subject: str) -> int:
    """Bytes that /proc/self/status says of ``subject``."""
    found = re.search(rf"{subject}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) * 1024


if __name__ == "__main__":
    main()
