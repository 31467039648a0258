"""What it costs to put results of a real model into a scratchpad of rows: PP-OCR's classifier of directions.

python benchmarks/blocked_rows.py

The results lie in ordinary memory, in rows of the model's axes, or in rows of a layout that the compiler chooses. The
scratchpad is simulated and as fast as other memory, so the difference is what the layout costs.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import landbridge as lb
from landbridge.passes.place import PlacedNode

sys.path.insert(0, str(Path(__file__).parent))

from measure import interleaved, write
from wheel_files import wheel_file

MODEL = ("rapidocr_onnxruntime==1.4.4", "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx")
SHAPES = {"x": (1, 3, 48, 192)}
#: The results of convolutions that are placed, by the bytes that they have at most.
SETS = {"one value a channel": (1, 4096), "up to 20 KiB of pixels": (1024, 20480)}
MOST = 18
VARIANTS = {
    "ordinary memory": None,
    "rows of the model's axes": "npu@global.vtcm[2]",
    "blocked": "npu@global.vtcm[blocked]",
}


def nodes(path: Path, target: lb.Target, least: int, most: int, of_pixels: bool) -> list[str]:
    """The names of the first ``MOST`` nodes with a result in channels of at least and at most so many bytes."""
    found: dict[str, None] = {}

    def look(node: PlacedNode) -> None:
        (shape,) = [output.shape for output in node.outputs]
        if len(shape) == 4 and (shape[2:] != (1, 1)) == of_pixels and least <= 4 * np.prod(shape) <= most:
            found[node.name] = None

    lb.compile(path, {"npu": target}, shapes=SHAPES, place=look)
    return list(found)[:MOST]


def main() -> None:
    path = wheel_file(*MODEL)
    x = np.random.default_rng(0).standard_normal(SHAPES["x"], np.float32)
    rows = []
    for name, (least, most) in SETS.items():
        device = lb.device("sim:scratch")
        target = lb.Target.from_device(device, "llvm")
        placed = nodes(path, target, least, most, of_pixels=least > 1)
        sessions, results = {}, []
        for variant, place in VARIANTS.items():
            places = dict.fromkeys(placed, place) if place else {}
            executable = lb.compile(path, {"npu": target}, shapes=SHAPES, place=places)
            session = sessions[variant] = lb.Session(executable, device=device)
            session.set_input_zero_copy("x", x)
            with lb.ledger() as moves:
                session.run()
            results.append(np.array(session.get_output(0)))
            sizes = [move.nbytes for move in moves if move.is_kernel]
            planned = sum(storage.planned_bytes for storage in executable.memory if storage.scope == "global.vtcm")
            rows.append([f"{len(placed)} results, {name}", variant, planned, len(sizes), sum(sizes)])
        assert all(np.abs(result - results[0]).max() <= 1e-6 for result in results)
        spent = interleaved({variant: session.run for variant, session in sessions.items()}, rounds=100, calls=5)
        for row in rows[-len(VARIANTS) :]:
            row += [spent[row[1]] * 1e6, spent[row[1]] / spent["ordinary memory"]]
        del session, sessions  # the next ones need the scratchpad
    columns = ("placed", "layout", "bytes in rows", "reorders", "bytes reordered", "us", "ratio")
    write("blocked_rows", columns, [tuple(row) for row in rows])


if __name__ == "__main__":
    main()
