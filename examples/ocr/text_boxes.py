"""From the detector's probability map to boxes of text, and from a box to its straightened crop."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

PIXEL_THRESHOLD = 0.3  # a pixel is text above this probability
BOX_THRESHOLD = 0.5  # a box is kept when the mean probability inside it is above this
UNCLIP_RATIO = 1.6  # the detector is trained on shrunk boxes: grow each by area * ratio / perimeter
MIN_SIDE = 3.0  # pixels of the map


@dataclass(frozen=True)
class TextBox:
    """``corners``: float32 (4, 2), x and y in pixels, clockwise from the top left. ``score``: mean probability."""

    corners: np.ndarray
    score: float


def find_boxes(probability: np.ndarray, scale_x: float = 1.0, scale_y: float = 1.0) -> list[TextBox]:
    """Boxes of text in ``probability`` (float32, height x width, 0 to 1), from the top down.

    ``scale_x`` and ``scale_y``: pixels of the picture for one of the map.
    """
    mask = (probability > PIXEL_THRESHOLD).astype(np.uint8)
    mask = cv2.dilate(mask, np.ones((2, 2), np.uint8))
    contours, _ = cv2.findContours(mask, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
    boxes = []
    for contour in contours:
        centre, (width, height), angle = cv2.minAreaRect(contour)
        if min(width, height) < MIN_SIDE:
            continue
        score = _mean_inside(probability, contour)
        if score < BOX_THRESHOLD:
            continue
        grown = width * height * UNCLIP_RATIO / (width + height)  # both sides: twice area * ratio / perimeter
        corners = cv2.boxPoints((centre, (width + grown, height + grown), angle))
        boxes.append(TextBox(_clockwise(corners) * np.float32([scale_x, scale_y]), score))
    return sorted(boxes, key=lambda box: (box.corners[:, 1].min(), box.corners[:, 0].min()))


def crop(picture: np.ndarray, box: TextBox) -> np.ndarray:
    """The part of ``picture`` in ``box``, turned so that its longer side is horizontal."""
    corners = box.corners
    width = int(np.linalg.norm(corners[1] - corners[0]))
    height = int(np.linalg.norm(corners[3] - corners[0]))
    width, height = max(width, 1), max(height, 1)
    upright = np.float32([[0, 0], [width, 0], [width, height], [0, height]])
    warp = cv2.getPerspectiveTransform(corners.astype(np.float32), upright)
    straight = cv2.warpPerspective(picture, warp, (width, height), flags=cv2.INTER_CUBIC)
    return np.rot90(straight) if height >= 1.5 * width else straight


def _mean_inside(probability: np.ndarray, contour: np.ndarray) -> float:
    x, y, width, height = cv2.boundingRect(contour)
    inside = np.zeros((height, width), np.uint8)
    cv2.fillPoly(inside, [contour - [x, y]], 1)
    return cv2.mean(probability[y : y + height, x : x + width], inside)[0]


def _clockwise(corners: np.ndarray) -> np.ndarray:
    """``corners`` of a rectangle from the top left on, whatever its angle."""
    by_x = corners[np.argsort(corners[:, 0], kind="stable")]
    left, right = by_x[:2], by_x[2:]
    top_left, bottom_left = left[np.argsort(left[:, 1])]
    top_right, bottom_right = right[np.argsort(right[:, 1])]
    return np.array([top_left, top_right, bottom_right, bottom_left], np.float32)
