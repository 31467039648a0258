"""Real input for real models: the picture that the example ships, and a recording of a voice."""

from __future__ import annotations

import wave
from pathlib import Path

import cv2
import numpy as np
from pixels import write_for_classifier, write_for_detector

PICTURE = Path(__file__).parents[2] / "examples" / "ocr" / "picture.jpg"
#: A voice saying "front center"; Debian's package alsa-utils (see .ci/install-debian-packages).
RECORDING = Path("/usr/share/sounds/alsa/Front_Center.wav")


def picture_for_detector(height: int, width: int) -> np.ndarray:
    """The picture as the text detector and photo classifiers take it: float32 (1, 3, height, width)."""
    frame = np.empty((1, 3, height, width), np.float32)
    write_for_detector(cv2.imread(str(PICTURE)), frame)
    return frame


def line_of_text(height: int, width: int) -> np.ndarray:
    """The heading of the picture as classifier and recognizer take it: float32 (1, 3, height, width)."""
    line = np.empty((1, 3, height, width), np.float32)
    write_for_classifier(cv2.imread(str(PICTURE))[34:80, 150:470], line)
    return line


def speech(samples: int, *, rate: int = 16000, start: float = 0.35) -> np.ndarray:
    """``samples`` of the recording from second ``start``, at ``rate`` per second: float32 (samples,), -1 to 1."""
    with wave.open(str(RECORDING)) as file:
        assert (file.getnchannels(), file.getsampwidth()) == (1, 2)
        step = file.getframerate() // rate
        whole = np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32) / 32768
    slow = whole[: len(whole) // step * step].reshape(-1, step).mean(1)  # a box filter is enough for a voice
    begin = int(start * rate)
    return slow[begin : begin + samples]
