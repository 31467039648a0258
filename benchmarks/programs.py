"""Programs of others that import onnxruntime, unchanged, on onnxruntime and on Landbridge in its place.

python benchmarks/programs.py [--rounds 9] [--only REGEX] [--write]

Each program of programs.toml runs in two processes, one as it is and one after ``install_as_onnxruntime``, which take
calls interleaved. Its wheels are installed without what they ask for, in a folder each below
``~/.cache/landbridge/programs``; ``needs`` names all that is used. The driver gives every session one thread in both
processes; the program is as its wheel has it. Times are medians of whole calls: what the program does before and after
the model is in them. Programs are cached on disk, as they are for users: some make a session for each call. Results of
pieces, by ``--only``, are kept, and one table by ``--write``.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import runpy
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from measure import write

FOLDER = Path(os.environ.get("LANDBRIDGE_MODELS", Path.home() / ".cache" / "landbridge")) / "programs"
#: Of a number of a result, relative to it where it is above 1.
CLOSE = 5e-3


def programs() -> dict[str, dict[str, Any]]:
    """What is said of each program, by its package's name."""
    return tomllib.loads((Path(__file__).parent / "programs.toml").read_text())


# What programs are given -------------------------------------------------------------------------------------------


def page(*lines: str, size: tuple[int, int] = (640, 200)) -> np.ndarray[Any, Any]:
    """A white picture of ``size``, in pixels by width and height, with ``lines`` of dark text; uint8 in order BGR."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", size, "white")
    draw, each = ImageDraw.Draw(image), size[1] // max(len(lines), 1)
    for index, line in enumerate(lines):
        draw.text((size[0] // 20, index * each + each // 5), line, fill=(20, 30, 90), font_size=min(each // 2, 48))
    return np.array(image)[:, :, ::-1].copy()


def scene(height: int, width: int) -> np.ndarray[Any, Any]:
    """Smooth colours with a few discs, ``height`` by ``width``; uint8 in order BGR."""
    import cv2

    generator = np.random.default_rng(1)
    image = cv2.resize(generator.integers(0, 255, (6, 8, 3), np.uint8), (width, height), interpolation=cv2.INTER_CUBIC)
    for _ in range(5):
        centre = (int(generator.integers(width)), int(generator.integers(height)))
        cv2.circle(image, centre, height // 9, generator.integers(0, 255, 3).tolist(), -1)
    return np.ascontiguousarray(image)


def voice(seconds: float) -> np.ndarray[Any, Any]:
    """Float32 sound at 16 kHz: a voice-like tone with overtones that starts and stops, over faint noise."""
    at = np.arange(int(seconds * 16000)) / 16000
    pitch = 140 + 30 * np.sin(2 * np.pi * 0.7 * at)
    phase = 2 * np.pi * np.cumsum(pitch) / 16000
    tone = sum(np.sin(k * phase) / k for k in range(1, 12)) * (np.sin(2 * np.pi * 1.1 * at) > -0.3)
    noise = np.random.default_rng(2).normal(0, 0.01, at.size)
    return (0.2 * tone * (1 + 0.5 * np.sin(2 * np.pi * 4 * at)) + noise).astype(np.float32)


# One process of a program ------------------------------------------------------------------------------------------


def child(name: str, swapped: bool) -> None:
    """Run the program, and answer each line of stdin by a line of JSON: seconds, result, bytes copied."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what programs print is not an answer
    os.environ["LANDBRIDGE_CACHE"] = str(FOLDER / "compiled")  # which measure turns off
    folder = FOLDER / name
    copied: AbstractContextManager[Any] = nullcontext()
    sys.path.insert(0, str(folder))
    if swapped:
        from landbridge.memory.ledger import ledger
        from landbridge.onnxruntime import install_as_onnxruntime

        install_as_onnxruntime()
        copied = ledger()
    made = give_one_thread()
    os.chdir(folder)
    Path("program.py").write_text(programs()[name]["program"])
    call = runpy.run_path("program.py", {"page": page, "scene": scene, "voice": voice})["call"]
    with copied as moves:  # a first call, which is not timed
        result = plain(call())
    copies = None if moves is None else moves.total_bytes
    print(json.dumps({"result": result, "copied": copies, "sessions": made}), file=answers, flush=True)
    for _ in sys.stdin:
        began = time.perf_counter()
        call()
        print(json.dumps(time.perf_counter() - began), file=answers, flush=True)


def give_one_thread() -> list[str]:
    """Let each session of this process have one thread, whatever its program asks for; the modules of sessions made."""
    import onnxruntime

    begin, made = onnxruntime.InferenceSession.__init__, list[str]()

    def one_thread(self: Any, path: Any, sess_options: Any = None, *rest: Any, **others: Any) -> None:
        options = sess_options or onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        begin(self, path, options, *rest, **others)
        made.append(type(self).__module__)

    onnxruntime.InferenceSession.__init__ = one_thread
    return made


def plain(value: Any) -> Any:
    """``value`` in lists, numbers and text, as JSON has them."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(each) for each in value]
    if value is None or isinstance(value, str | int | float):
        return value
    return plain(vars(value)) if hasattr(value, "__dict__") else str(value)


# Two of them, interleaved ---------------------------------------------------------------------------------------------


def difference(ours: Any, theirs: Any) -> float:
    """The largest difference of two numbers, relative to theirs above 1; inf where anything else differs."""
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return max((difference(a, b) for a, b in zip(ours, theirs, strict=True)), default=0.0)
    if isinstance(ours, dict) and isinstance(theirs, dict) and ours.keys() == theirs.keys():
        return max((difference(ours[key], theirs[key]) for key in ours), default=0.0)
    if isinstance(ours, int | float) and isinstance(theirs, int | float):
        return abs(ours - theirs) / max(1.0, abs(theirs))
    return 0.0 if ours == theirs else math.inf


def count(result: Any) -> int:
    """How many numbers and texts ``result`` has."""
    inner = result.values() if isinstance(result, dict) else result if isinstance(result, list) else None
    return int(result is not None) if inner is None else sum(map(count, inner))


def install(name: str, needs: Sequence[str]) -> None:
    """Put the wheels of ``needs`` into the program's folder, once."""
    folder = FOLDER / name
    said = "\n".join(needs)
    done = folder / "installed.txt"
    if done.exists() and done.read_text() == said:
        return
    pip = [sys.executable, "-P", "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target", str(folder)]
    subprocess.run([*pip, *needs], check=True, capture_output=True)
    done.write_text(said)


class Process:
    """A program that runs in a process of its own."""

    def __init__(self, name: str, swapped: bool) -> None:
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by end()
        command = [sys.executable, __file__, "--child", name, *(["--swapped"] if swapped else [])]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        self.first = self._answer()

    def seconds(self) -> float:
        """The seconds of one call."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._answer())

    def end(self) -> None:
        """Let it end."""
        self._process.communicate(timeout=60)
        self._errors.close()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._errors.seek(0)
            raise RuntimeError("".join(self._errors.read().strip().splitlines()[-1:])[:200])
        return json.loads(line)


def measured(name: str, said: Mapping[str, Any], rounds: int) -> dict[str, Any]:
    """What both processes of a program come to, and their medians; or what failed, and where."""
    found: dict[str, Any] = {"version": said["needs"][0].partition("==")[2], "does": said["does"]}
    sides: dict[str, Process] = {}
    for side in ("onnxruntime", "landbridge"):
        try:
            if not sides:
                install(name, said["needs"])
            sides[side] = Process(name, side == "landbridge")
        except (RuntimeError, subprocess.CalledProcessError) as failure:
            for each in sides.values():
                each.end()
            return {**found, "failed": f"{side}: {failure}"}
    theirs, ours = (sides[side].first for side in ("onnxruntime", "landbridge"))
    times: dict[str, list[float]] = {side: [] for side in sides}
    for _ in range(rounds):
        for side, process in sides.items():
            times[side].append(process.seconds())
    for process in sides.values():
        process.end()
    return {
        **found,
        "difference": difference(ours["result"], theirs["result"]),
        "results": [ours["result"], theirs["result"]] if difference(ours["result"], theirs["result"]) > CLOSE else [],
        "compared": count(theirs["result"]),
        "sessions": [sorted({*ours["sessions"]}), sorted({*theirs["sessions"]})],
        "copied": ours["copied"],
        "ms": {side: statistics.median(spent) * 1000 for side, spent in times.items()},
    }


def row(name: str, found: Mapping[str, Any]) -> list[object]:
    """The row of a program in the table."""
    named = f"{name} {found['version']}"
    if "failed" in found:
        return [named, found["does"], f"failed on {found['failed']}", "", "", "", ""]
    difference = found["difference"]
    verdict = "the same" if difference == 0 else f"{difference:.1e} apart" if difference <= CLOSE else "different"
    if not found.get("compared", True):
        verdict = "nothing to compare"
    ours, theirs = found["ms"]["landbridge"], found["ms"]["onnxruntime"]
    return [named, found["does"], verdict, theirs, ours, theirs / ours, found["copied"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="")
    parser.add_argument("--write", action="store_true", help="only write the table of what was measured")
    options = parser.parse_args()
    retained = FOLDER / "measured"
    retained.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, said in programs().items():
        file = retained / f"{name}.json"
        if not options.write and re.search(options.only, name):
            found = measured(name, said, options.rounds)
            file.write_text(json.dumps(found))
            print(*row(name, found), *found.get("results", []), sep=" | ", flush=True)
        elif file.exists():
            found = json.loads(file.read_text())
        else:
            continue
        rows.append(row(name, found))
    if options.write:
        columns = ("program", "what is called", "result", "onnxruntime ms", "ms", "onnxruntime / ours", "bytes copied")
        write("programs", columns, rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], "--swapped" in sys.argv)
    else:
        main()
