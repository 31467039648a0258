"""Says of a folder of pictures of text lines which are upside down, on all workers of a Ray cluster.

    python examples/ray/upright.py [FOLDER] [--workers 2]

The classifier is compiled once; its .lbx goes to each node once, by Ray's object store. Workers read the pixels where
Ray's store has them, and the program copies none.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import cv2
import numpy as np
import ray

import landbridge as lb
from landbridge.ray import Model, share

sys.path.insert(0, str(Path(__file__).parents[1] / "ocr"))
from wheel_models import CLASSIFY, PP_OCR, wheel_model

HEIGHT, WIDTH = 48, 192
#: Pixels as they are read; the program normalizes them to -1 to 1.
FRAME = lb.InputSpec(dtype="uint8", layout="NHWC", mean=127.5, scale=1 / 127.5)


def read(row: dict[str, str]) -> dict[str, object]:
    """One picture in the network's size, at full height, grey to the right of it."""
    picture = cv2.imread(row["path"])
    used = min(WIDTH, max(1, round(picture.shape[1] * HEIGHT / picture.shape[0])))
    pixels = np.full((HEIGHT, WIDTH, 3), 127, np.uint8)
    pixels[:, :used] = cv2.resize(picture, (used, HEIGHT))
    return {"path": row["path"], "x": pixels}


class Counting(Model):
    """A Model whose rows say what it has copied so far."""

    def __call__(self, batch):  # type: ignore[no-untyped-def]
        """The outputs, with the bytes copied for this batch in its first row."""
        before = self.bytes_copied
        results = super().__call__(batch)
        copied = np.zeros(len(batch["x"]), np.int64)
        copied[0] = self.bytes_copied - before
        return {**results, "copied": copied}


def main() -> None:
    parser = argparse.ArgumentParser(description="Classify a folder of pictures with Landbridge on Ray.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rows", type=int, default=16, help="pictures of one run")
    options = parser.parse_args()
    paths = [{"path": str(file.absolute())} for file in sorted(options.folder.iterdir())]
    shapes, dims = {"x": ("N", 3, HEIGHT, WIDTH)}, {"N": f"1..{options.rows}"}
    program = lb.compile(wheel_model(PP_OCR, CLASSIFY), shapes=shapes, dims=dims, inputs={"x": FRAME})
    (output,) = (spec.name for spec in program.main.outputs)
    ray.init(logging_level="warning", log_to_driver=False)
    began = time.perf_counter()
    results = (
        ray.data.from_items(paths)
        .map(read)
        .map_batches(
            Counting,
            fn_constructor_args=(share(program),),
            fn_constructor_kwargs={"keep": ("path",)},
            batch_format="numpy",
            batch_size=options.rows,
            concurrency=options.workers,
        )
        .take_all()
    )
    seconds = time.perf_counter() - began
    for row in sorted(results, key=lambda row: row["path"]):
        print(Path(row["path"]).name, "upside down" if row[output][1] > row[output][0] else "upright")
    copied = sum(int(row["copied"]) for row in results)
    print(f"{len(results)} pictures in {seconds:.1f} s, {len(results) / seconds:.0f} a second; bytes copied: {copied}")


if __name__ == "__main__":
    main()
