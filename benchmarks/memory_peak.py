"""What a run takes of memory, as planned, as counted by the allocator and as the kernel counts it.

python benchmarks/memory_peak.py

Each model runs in a child process of its own, which has run another program before, so that what is measured is the
run and not the interpreter: ``Anonymous`` of /proc/self/smaps_rollup after the runs less before the Session.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples" / "ocr")]

THREADS = (1, 2)
#: Bytes not to exceed: the true peak of a peer, or its lower bound.
GOALS = {"squeezenet": 3.93e6, "resnet50": 5.22e6, "PP-OCRv4 det": 6.55e6}


def main() -> None:
    from measure import write

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        warm, files = compile_all(Path(folder))
        for name, file in files.items():
            for threads in THREADS:
                line = subprocess.run(
                    [sys.executable, __file__, "--child", warm, file, str(threads)],
                    capture_output=True,
                    check=True,
                    text=True,
                )
                rows.append(row(name, threads, json.loads(line.stdout)))
    columns = ("model", "threads", "lower bound", "activations", "outputs", "kernel scratch", "planned")
    columns += ("Statistics peak", "grown", "grown / planned", "goal")
    write("memory_peak", columns, rows)


def compile_all(folder: Path) -> tuple[str, dict[str, str]]:
    """The ``.lbx`` of a small program, and those of the models."""
    from tests.whole_models.light_models import light_model
    from tests.whole_models.small_models import projection
    from wheel_models import DETECT, PP_OCR, wheel_model

    import landbridge as lb

    models = {
        "squeezenet": (light_model("squeezenet"), None),
        "resnet50": (light_model("resnet50"), None),
        "PP-OCRv4 det": (wheel_model(PP_OCR, DETECT), {"x": (1, 3, 320, 320)}),
    }
    files = {}
    for name, (model, shapes) in models.items():
        file = folder / f"{name}.lbx"
        lb.compile(model, shapes=shapes).save(file)
        files[name] = str(file)
    warm = folder / "warm.lbx"
    lb.compile(projection(256, 256, 256)).save(warm)
    return str(warm), files


def row(name: str, threads: int, found: dict[str, int]) -> list[object]:
    """One line of the table, in MB but for the scratch and the ratio."""
    sizes = [found[key] / 1e6 for key in ("lower_bound", "activations", "outputs")]
    planned = found["planned"]
    return [
        name,
        threads,
        *sizes,
        f"{found['scratch']} B",
        planned / 1e6,
        found["peak"] / 1e6,
        found["grown"] / 1e6,
        found["grown"] / planned,
        GOALS[name] / 1e6,
    ]


def child(warm: str, file: str, threads: int) -> None:
    """Run the program of ``file`` and print what it took, after one of ``warm``."""
    import numpy as np

    import landbridge as lb
    from landbridge.device.registry import device
    from landbridge.memory.allocators.default import default_allocator
    from landbridge.memory.allocators.statistics import StatisticsAllocator

    rng = np.random.default_rng(0)

    def run(path: str) -> tuple[lb.Session, StatisticsAllocator, int]:
        program = lb.load(path)
        for constant in program.constants.values():
            constant.sum()  # mapped pages are none of ours, but page tables are
        inputs = {spec.name: rng.standard_normal(spec.shape).astype(spec.dtype) for spec in program.main.inputs}
        counted = StatisticsAllocator(default_allocator(device("cpu")))
        before = anonymous_bytes()
        session = lb.Session(program, num_threads=threads, memory_cfg={("cpu:0", "global"): counted})
        for name, value in inputs.items():
            session.set_input_zero_copy(name, value)
        for _ in range(3):
            session.run()
        return session, counted, anonymous_bytes() - before

    warmed = run(warm)
    session, counted, grown = run(file)
    del warmed
    (planned,) = session.planned_memory
    (report,) = session.executable.memory
    print(
        json.dumps(
            {
                "lower_bound": report.lower_bound_bytes,
                "activations": planned.activation_bytes,
                "outputs": planned.output_bytes,
                "scratch": planned.scratch_bytes,
                "planned": planned.planned_bytes,
                "peak": counted.counters.peak_bytes,
                "grown": grown,
            }
        )
    )


def anonymous_bytes() -> int:
    """Memory of this process that no file backs."""
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Anonymous:"):
            return int(line.split()[1]) << 10
    raise RuntimeError("the kernel's smaps_rollup has no line Anonymous")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        main()
