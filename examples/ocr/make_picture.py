"""Makes picture.jpg, the photographed notice board that the example reads; everything in it is drawn here.

    python examples/ocr/make_picture.py

The font is the one inside Pillow (Aileron, CC0). One line is upside down on purpose: the direction classifier has
something to find.
"""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageFont

SIZE = (640, 480)
PAPER = (420, 560)
LINES = (  # text, size, distance from the top
    ("HARBOUR CAFE", 46, 24),
    ("Open 7:30 - 18:00", 30, 92),
    ("Coffee            2.40", 28, 158),
    ("Green tea       2.10", 28, 204),
    ("Apple cake     3.75", 28, 250),
    ("Soup of day    5.60", 28, 296),
    ("Please pay at the counter", 26, 368),
)


def paper() -> Image.Image:
    """The sheet, seen straight on."""
    sheet = Image.new("RGB", PAPER, (244, 238, 222))
    draw = ImageDraw.Draw(sheet)
    draw.rectangle((0, 0, PAPER[0] - 1, 80), fill=(28, 62, 92))
    for text, size, top in LINES:
        ink = (250, 246, 230) if top < 80 else (38, 34, 40)
        draw.text((PAPER[0] // 2, top), text, ink, ImageFont.load_default(size), anchor="ma")
    draw.line((30, 345, PAPER[0] - 30, 345), fill=(160, 150, 130), width=2)
    stamp = Image.new("RGB", (PAPER[0] - 60, 60), (214, 92, 58))
    ImageDraw.Draw(stamp).text((180, 12), "NEW MENU FRIDAY", "white", ImageFont.load_default(30), anchor="ma")
    sheet.paste(stamp.rotate(180), (30, 450))
    return sheet


def photograph(sheet: Image.Image, seed: int = 7) -> np.ndarray:
    """``sheet`` on a wall as a camera sees it, RGB uint8: tilted, in perspective, unevenly lit, noisy."""
    rng = np.random.default_rng(seed)
    width, height = SIZE
    rows, columns = np.mgrid[0:height, 0:width].astype(np.float32)
    wall = np.stack([104 + 10 * np.sin(rows / 17 + phase) + 6 * np.sin(columns / 31) for phase in (0, 0.4, 0.9)], -1)
    corners = np.float32([[0, 0], [PAPER[0], 0], [PAPER[0], PAPER[1]], [0, PAPER[1]]])
    seen = np.float32([[118, 32], [498, 12], [536, 446], [92, 462]])
    warp = cv2.getPerspectiveTransform(corners, seen)
    board = cv2.warpPerspective(np.asarray(sheet), warp, SIZE, flags=cv2.INTER_AREA)
    mask = cv2.warpPerspective(np.full(PAPER[::-1], 255, np.uint8), warp, SIZE)[..., None] / 255.0
    light = (1.08 - 0.38 * (columns / width) - 0.12 * (rows / height))[..., None]
    scene = cv2.GaussianBlur((wall * (1 - mask) + board * mask) * light, (0, 0), 0.7)
    return np.clip(scene + rng.normal(0, 4, scene.shape), 0, 255).astype(np.uint8)


if __name__ == "__main__":
    file = Path(__file__).with_name("picture.jpg")
    Image.fromarray(photograph(paper())).save(file, quality=88)
    print(f"wrote {file.name}, {file.stat().st_size // 1024} KiB")
