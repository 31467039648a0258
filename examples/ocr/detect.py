"""Finds text in a picture and says which lines are upside down, without copying a byte.

    python examples/ocr/detect.py [PICTURE] [--output detected.png]

Two PP-OCR networks are compiled for this machine. The picture is normalized straight into the memory that the
detector reads, and its result is looked at where it was written.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import cv2
import numpy as np
from pixels import detector_size, write_for_classifier, write_for_detector
from text_boxes import TextBox, crop, find_boxes
from wheel_models import CLASSIFY, DETECT, PP_OCR, wheel_model

import landbridge as lb

HERE = Path(__file__).parent
SURE = 0.9  # a line counts as upside down above this probability


def compiled(name: str, shape: tuple[int, ...]) -> lb.Executable:
    """The model called ``name``, compiled for this machine at ``shape``."""
    began = time.perf_counter()
    executable = lb.compile(wheel_model(PP_OCR, name), target="llvm", shapes={"x": shape})
    print(f"compiled {name} for {'x'.join(map(str, shape))} in {time.perf_counter() - began:.1f} s")
    return executable


def latency(session: lb.Session, repeat: int) -> str:
    """Least and median time of ``repeat`` runs of ``session``, as text."""
    times = []
    for _ in range(repeat):
        began = time.perf_counter()
        session.run()
        times.append((time.perf_counter() - began) * 1e3)
    return f"min {min(times):.2f} ms, median {statistics.median(times):.2f} ms of {repeat} runs"


def report(name: str, session: lb.Session, repeat: int) -> None:
    """Print latency, planned memory and copies of ``session``, whose inputs are bound."""
    with lb.ledger() as moves:
        session.run()
    print(f"{name}: {latency(session, repeat)}")
    for part in session.executable.memory:
        print(f"  memory planned {part.planned_bytes:,} bytes, lower bound {part.lower_bound_bytes:,}")
    print(f"  bytes copied in one run: {moves.total_bytes}")


def detect(picture: np.ndarray, repeat: int) -> list[TextBox]:
    """The boxes of text in ``picture``."""
    height, width = detector_size(*picture.shape[:2])
    shape = (1, 3, height, width)
    session = lb.Session(compiled(DETECT, shape), device="cpu")
    frame = lb.empty(shape, dtype="float32", device="cpu")
    with frame.host_view("w") as pixels:
        write_for_detector(picture, pixels)
    session.set_input_zero_copy("x", frame)
    report("detector", session, repeat)
    with session.get_output(0).host_view("r") as probability:
        return find_boxes(probability[0, 0], picture.shape[1] / width, picture.shape[0] / height)


def upside_down(crops: list[np.ndarray], repeat: int) -> list[bool]:
    """Whether each of ``crops`` shows a line of text that is upside down."""
    session = lb.Session(compiled(CLASSIFY, (1, 3, 48, 192)), device="cpu")
    line = session.get_input("x")
    found = []
    for straight in crops:
        with line.host_view("w") as pixels:
            write_for_classifier(straight, pixels)
        session.run()
        with session.get_output(0).host_view("r") as upright_or_not:
            found.append(bool(upright_or_not[0, 1] > SURE))
    report("direction", session, repeat)
    return found


def draw(picture: np.ndarray, boxes: list[TextBox], flipped: list[bool]) -> np.ndarray:
    """``picture`` with its boxes: green, and red around lines that are upside down."""
    drawn = picture.copy()
    for box, over in zip(boxes, flipped, strict=True):
        colour = (40, 40, 230) if over else (60, 190, 40)
        cv2.polylines(drawn, [box.corners.round().astype(np.int32)], True, colour, 2, cv2.LINE_AA)
    return drawn


def main() -> None:
    parser = argparse.ArgumentParser(description="Find text in a picture with Landbridge.")
    parser.add_argument("picture", nargs="?", type=Path, default=HERE / "picture.jpg")
    parser.add_argument("--output", type=Path, default=Path("detected.png"))
    parser.add_argument("--repeat", type=int, default=20, help="timed runs of each network")
    options = parser.parse_args()
    picture = cv2.imread(str(options.picture))
    if picture is None:
        parser.error(f"{options.picture} is not a picture that can be read")
    boxes = detect(picture, options.repeat)
    flipped = upside_down([crop(picture, box) for box in boxes], options.repeat)
    for box, over in zip(boxes, flipped, strict=True):
        corners = " ".join(f"({x:.0f}, {y:.0f})" for x, y in box.corners)
        print(f"{corners}  score {box.score:.2f}  {'upside down' if over else 'upright'}")
    cv2.imwrite(str(options.output), draw(picture, boxes, flipped))
    print(f"{len(boxes)} boxes, {sum(flipped)} upside down; drawn into {options.output}")


if __name__ == "__main__":
    main()
