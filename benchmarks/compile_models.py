"""What whole models take to compile, of time and memory.

python benchmarks/compile_models.py

Each compile is the first of a child process of its own, on one core and on all; seconds are those of the call, and
processor seconds count LLVM's helpers too. Memory is the most that was resident, interpreter and libraries included.
Our modules are byte code before, as an installer leaves them.
"""

from __future__ import annotations

import compileall
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples" / "ocr")]


def main() -> None:
    import onnx
    from measure import write
    from tests.whole_models.light_models import light_model
    from wheel_models import DETECT, PP_OCR, wheel_model

    compileall.compile_dir(ROOT / "src", quiet=1)
    rows: list[tuple[object, ...]] = []
    with tempfile.TemporaryDirectory() as folder:
        files = {"PP-OCRv4 det": (str(wheel_model(PP_OCR, DETECT)), {"x": (1, 3, 320, 320)})}
        for name in ("squeezenet", "resnet50"):
            file = f"{folder}/{name}.onnx"
            onnx.save(light_model(name), file)
            files[name] = (file, {})
        for name, (file, shapes) in files.items():
            for cores in sorted({1, os.cpu_count() or 1}):
                found = compiled(file, shapes, f"{folder}/{name}.lbx", cores)
                size = Path(file).stat().st_size / 1e6
                memory = f"{found['peak'] / 1e6:.0f} MB, {found['peak'] / 1e6 / size:.1f} of the file's"
                rows.append((f"compile {name}", cores, found["wall"], found["processor"], memory))
    write("compile_models", ("what", "cores", "seconds", "processor seconds", "peak memory"), rows)


def compiled(file: str, shapes: dict[str, tuple[int, ...]], saved: str, cores: int) -> dict[str, float]:
    """What one compile in a process of its own took."""
    command = [sys.executable, __file__, "--child", file, json.dumps(shapes), saved]
    line = subprocess.run(
        command, capture_output=True, check=True, text=True, preexec_fn=lambda: _keep_to(cores)
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
        main()
