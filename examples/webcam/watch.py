"""Finds text in the frames of a camera or of a video, in a loop that copies nothing from frame to network.

    python examples/webcam/watch.py [SOURCE] [--frames 100] [--show]

SOURCE is the number of a camera (0 is /dev/video0, read through V4L2) or a video file. The decoder writes each frame
into one buffer, blue, green and red bytes by turns; the first kernel of the network reads them there, and normalizes
and resizes as it reads.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np

import landbridge as lb

sys.path.insert(0, str(Path(__file__).parents[1] / "ocr"))
from pixels import detector_size
from text_boxes import TextBox, find_boxes
from wheel_models import DETECT, PP_OCR, wheel_model

#: What the network was trained with, in the order of the frame's bytes.
MEAN = tuple(255 * m for m in (0.485, 0.456, 0.406))
SCALE = tuple(1 / (255 * d) for d in (0.229, 0.224, 0.225))


def opened(source: str) -> cv2.VideoCapture:
    """The camera of that number, or the file; ends the program where there is none."""
    capture = cv2.VideoCapture(int(source), cv2.CAP_V4L2) if source.isdecimal() else cv2.VideoCapture(source)
    if not capture.isOpened():
        sys.exit(f"{source} cannot be opened: give the number of a camera (ls /dev/video*), or a video file")
    capture.set(cv2.CAP_PROP_BUFFERSIZE, 1)  # the newest frame, not one that waited
    return capture


def session_for(frame: np.ndarray) -> lb.Session:
    """The detector, compiled for frames as ``frame`` (uint8, height x width x 3), which it reads in place."""
    height, width = frame.shape[:2]
    inner = detector_size(height, width, longest=640)
    resize = None if inner == (height, width) else "linear"
    spec = lb.InputSpec(
        dtype="uint8", layout="NHWC", shape=(1, height, width, 3), mean=MEAN, scale=SCALE, resize=resize
    )
    session = lb.Session(lb.compile(wheel_model(PP_OCR, DETECT), shapes={"x": (1, 3, *inner)}, inputs={"x": spec}))
    session.set_input_zero_copy("x", frame[None])
    return session


def watch(capture: cv2.VideoCapture, most: int | None) -> Iterator[tuple[np.ndarray, list[TextBox], float]]:
    """For each frame: the frame, the text that is in it, and the milliseconds of the network alone."""
    arrived, frame = capture.read()
    if not arrived:
        sys.exit("no frame came")
    session = session_for(frame)
    number = 0
    while arrived and (most is None or number < most):
        began = time.perf_counter()
        session.run()
        milliseconds = (time.perf_counter() - began) * 1e3
        with session.get_output(0).host_view("r") as probability:
            height, width = probability.shape[2:]
            boxes = find_boxes(probability[0, 0], frame.shape[1] / width, frame.shape[0] / height)
        yield frame, boxes, milliseconds
        number += 1
        arrived, same = capture.read(frame)  # into the memory that the network reads
        if arrived and same is not frame and same.ctypes.data != frame.ctypes.data:
            frame[...] = same  # a source whose frames changed their size or kind of memory


def drawn(frame: np.ndarray, boxes: list[TextBox]) -> np.ndarray:
    """A copy of ``frame`` with its boxes."""
    picture = frame.copy()
    for box in boxes:
        cv2.polylines(picture, [box.corners.round().astype(np.int32)], True, (60, 190, 40), 2, cv2.LINE_AA)
    return picture


def main() -> None:
    parser = argparse.ArgumentParser(description="Find text in frames of a camera with Landbridge.")
    parser.add_argument("source", nargs="?", default="0", help="number of a camera, or a video file")
    parser.add_argument("--frames", type=int, help="end after so many; with the video, or at Ctrl-C, if absent")
    parser.add_argument("--output", type=Path, help="write the last frame there, with its boxes")
    parser.add_argument("--show", action="store_true", help="show frames in a window (opencv-python); q ends")
    options = parser.parse_args()
    capture, times, last = opened(options.source), [], None
    began = time.perf_counter()
    try:
        with lb.ledger() as moves:
            for frame, boxes, milliseconds in watch(capture, options.frames):
                times.append(milliseconds)
                last = frame, boxes
                print(f"frame {len(times)}: {len(boxes)} lines of text, {milliseconds:.1f} ms")
                if options.show:
                    cv2.imshow("landbridge", drawn(frame, boxes))
                    if cv2.waitKey(1) == ord("q"):
                        break
    except KeyboardInterrupt:
        pass
    finally:
        capture.release()
    if last is not None:
        p50, p90, p99 = np.percentile(times, (50, 90, 99))
        rate = len(times) / (time.perf_counter() - began)
        print(f"{len(times)} frames, {rate:.1f} a second with compiling and decoding")
        print(f"network: p50 {p50:.1f} ms, p90 {p90:.1f} ms, p99 {p99:.1f} ms; bytes copied: {moves.total_bytes}")
        if options.output is not None:
            cv2.imwrite(str(options.output), drawn(*last))


if __name__ == "__main__":
    main()
