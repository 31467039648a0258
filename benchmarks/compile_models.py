"""Time and memory of compiling whole models, and of compiling quantized versions of the same models.

python benchmarks/compile_models.py [--before SRC]

Each compile is the first of a child process of its own, on one core and on all; seconds are those of the call, and
processor seconds count LLVM's helpers too. Memory is the most that was resident, interpreter and libraries included.
Our modules are byte code before, as an installer leaves them. ``--before`` names the ``src`` of another version. Its
compiles alternate with those of this one, and its processor seconds are another column.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples" / "ocr")]
IMAGE = (1, 3, 224, 224)
COLUMNS = ("what", "cores", "seconds", "processor seconds", "over f32", "before", "peak memory")


def main(before: str | None) -> None:
    from measure import write

    trees = [str(ROOT / "src"), *([] if before is None else [before])]
    for tree in trees:
        compileall.compile_dir(tree, quiet=1)
    rows: list[tuple[object, ...]] = []
    with tempfile.TemporaryDirectory() as folder:
        plain: dict[tuple[str, int], float] = {}
        # In a process of its own, whose memory would count as that of the children of this one.
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            files = pool.submit(models, Path(folder)).result()
        for name, (file, shapes) in files.items():
            for cores in sorted({1, os.cpu_count() or 1}):
                found, *older = [compiled(tree, file, shapes, f"{folder}/{name}.lbx", cores) for tree in trees]
                size = Path(file).stat().st_size / 1e6
                memory = f"{found['peak'] / 1e6:.0f} MB, {found['peak'] / 1e6 / size:.1f} of the file's"
                plain[name, cores] = found["processor"]
                base = plain.get((name.removesuffix(", QDQ"), cores))
                over = found["processor"] / base if base and name.endswith(", QDQ") else ""
                old = older[0]["processor"] if older else ""
                rows.append((f"compile {name}", cores, found["wall"], found["processor"], over, old, memory))
    write("compile_models", COLUMNS, rows)


def models(folder: Path) -> dict[str, tuple[str, dict[str, tuple[int, ...]]]]:
    """Returns files of models with the shapes to compile them for, by name; those with ``, QDQ`` are quantized."""
    import onnx
    from quantized_models import quantized
    from tests.whole_models.light_models import light_model
    from wheel_models import DETECT, PP_OCR, wheel_model

    det = (1, 3, 320, 320)
    files = {"PP-OCRv4 det": (wheel_model(PP_OCR, DETECT), det)}
    for name in ("squeezenet", "shufflenet", "resnet50"):
        files[name] = folder / f"{name}.onnx", IMAGE
        onnx.save(light_model(name), files[name][0])
    found: dict[str, tuple[str, dict[str, tuple[int, ...]]]] = {}
    for name, (file, shape) in files.items():
        shapes: dict[str, tuple[int, ...]] = {"x": shape} if shape == det else {}
        found[name] = str(file), shapes
        found[f"{name}, QDQ"] = str(quantized(file, shape, folder / f"{name}.qdq.onnx")), shapes
    return found


def compiled(tree: str, file: str, shapes: dict[str, tuple[int, ...]], saved: str, cores: int) -> dict[str, float]:
    """What one compile by the version of which ``tree`` is the ``src`` took, in a process of its own."""
    command = [sys.executable, __file__, "--child", file, json.dumps(shapes), saved]
    line = subprocess.run(
        command,
        capture_output=True,
        check=True,
        text=True,
        env={**os.environ, "PYTHONPATH": tree},
        preexec_fn=lambda: _keep_to(cores),
    ).stdout
    found: dict[str, float] = json.loads(line)
    return found


def _keep_to(cores: int) -> None:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-cores:])


def child(file: str, shapes: dict[str, tuple[int, ...]], saved: str) -> None:
    """Compile ``file``, save it and print what that took."""
    import resource

    os.environ["LANDBRIDGE_CACHE"] = "0"
    import landbridge as lb

    began = time.perf_counter()
    executable = lb.compile(file, shapes=shapes or None)
    wall = time.perf_counter() - began
    used = [resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    executable.save(saved)
    processor = sum(each.ru_utime + each.ru_stime for each in used)
    print(json.dumps({"wall": wall, "processor": processor, "peak": used[0].ru_maxrss << 10}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], json.loads(sys.argv[3]), sys.argv[4])
    else:
        parser = argparse.ArgumentParser()
        parser.add_argument("--before", help="the src of another version")
        main(parser.parse_args().before)
