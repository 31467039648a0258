"""Pictures as the networks want them, written straight into memory they read.

Pictures are uint8, height x width x 3, in blue, green, red order; networks take float32, 1 x 3 x height x width.
"""

from __future__ import annotations

import cv2
import numpy as np

_MEAN = np.float32([0.485, 0.456, 0.406]).reshape(3, 1, 1)
_DEVIATION = np.float32([0.229, 0.224, 0.225]).reshape(3, 1, 1)


def detector_size(height: int, width: int, longest: int = 960) -> tuple[int, int]:
    """Height and width the detector runs at: multiples of 32, the longer side at most ``longest``."""
    ratio = min(1.0, longest / max(height, width))
    return tuple(max(32, round(side * ratio / 32) * 32) for side in (height, width))  # type: ignore[return-value]


def write_for_detector(picture: np.ndarray, out: np.ndarray) -> None:
    """Fill ``out`` with ``picture``, resized and normalized as the detector was trained."""
    resized = cv2.resize(picture, out.shape[:1:-1])
    np.divide(resized.transpose(2, 0, 1), 255, out=out[0], dtype=np.float32)
    out -= _MEAN
    out /= _DEVIATION


def write_for_classifier(crop: np.ndarray, out: np.ndarray) -> None:
    """Fill ``out`` with ``crop`` at full height, its proportions kept, -1 to 1; zeros to the right of it."""
    height, width = out.shape[2:]
    used = min(width, max(1, round(crop.shape[1] * height / crop.shape[0])))
    resized = cv2.resize(crop, (used, height))
    out[...] = 0
    np.divide(resized.transpose(2, 0, 1), 127.5, out=out[0, :, :, :used], dtype=np.float32)
    out[..., :used] -= 1
