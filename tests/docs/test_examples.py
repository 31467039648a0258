"""The example finds the text that its picture shows; its geometry is right on shapes known beforehand."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from make_picture import SIZE, paper, photograph
from pixels import detector_size, write_for_classifier, write_for_detector
from text_boxes import TextBox, crop, find_boxes

OCR = Path(__file__).parents[2] / "examples" / "ocr"


def test_the_main_job_finds_each_line_and_copies_nothing(tmp_path):
    drawn = tmp_path / "detected.png"
    child = subprocess.run(
        [sys.executable, OCR / "detect.py", "--output", drawn, "--repeat", "2"],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert child.returncode == 0, child.stderr
    assert child.stdout.count("bytes copied in one run: 0") == 2
    assert "12 boxes, 1 upside down" in child.stdout
    found = re.findall(r"^\((\d+), (\d+)\).*(upright|upside down)$", child.stdout, re.MULTILINE)
    (flipped,) = [(int(x), int(y)) for x, y, way in found if way == "upside down"]
    assert np.abs(np.subtract(flipped, (171, 375))).max() < 8
    planned = re.findall(r"memory planned ([\d,]+) bytes, lower bound ([\d,]+)", child.stdout)
    assert len(planned) == 2 and all(int(a.replace(",", "")) >= int(b.replace(",", "")) > 0 for a, b in planned)
    changed = np.any(cv2.imread(str(drawn)) != cv2.imread(str(OCR / "picture.jpg")), axis=2)
    assert 0.005 < changed.mean() < 0.1


def test_a_file_that_is_no_picture_is_refused():
    child = subprocess.run(
        [sys.executable, OCR / "detect.py", OCR / "detect.py"], capture_output=True, text=True, timeout=60
    )
    assert child.returncode == 2 and "not a picture" in child.stderr


def test_the_picture_is_what_its_script_makes():
    shipped = cv2.imread(str(OCR / "picture.jpg"))[..., ::-1].astype(float)
    made = photograph(paper()).astype(float)
    assert shipped.shape == made.shape == (SIZE[1], SIZE[0], 3)
    assert np.abs(shipped - made).mean() < 6  # JPEG


@pytest.mark.parametrize("angle", [0, 12, -30])
def test_a_tilted_blob_becomes_its_grown_rectangle(angle):
    probability = np.zeros((300, 400), np.float32)
    corners = cv2.boxPoints(((200, 150), (240, 40), angle))
    cv2.fillPoly(probability, [corners.round().astype(np.int32)], 0.9)
    (box,) = find_boxes(probability, 2.0, 2.0)
    assert box.score > 0.8
    np.testing.assert_allclose(box.corners.mean(0), (400, 300), atol=4)
    grown = 240 * 40 * 1.6 / (240 + 40)
    top, left = box.corners[1] - box.corners[0], box.corners[3] - box.corners[0]
    sides = np.hypot(*np.transpose([top, left]))
    np.testing.assert_allclose(sides, [2 * (240 + grown), 2 * (40 + grown)], atol=16)  # of 55 grown, twice


def test_faint_and_tiny_blobs_are_no_text():
    probability = np.zeros((100, 100), np.float32)
    probability[10:30, 10:60] = 0.35
    probability[70:71, 70:71] = 1
    assert find_boxes(probability) == []


def test_a_crop_is_straight_and_reads_in_the_right_direction():
    picture = np.zeros((60, 200, 3), np.uint8)
    picture[20:40, 50:100] = (255, 0, 0)
    picture[20:40, 100:150] = (0, 255, 0)
    straight = crop(picture, TextBox(np.float32([[50, 20], [150, 20], [150, 40], [50, 40]]), 1.0))
    assert straight.shape == (20, 100, 3)
    assert straight[10, 20].tolist() == [255, 0, 0] and straight[10, 80].tolist() == [0, 255, 0]


def test_pixels_are_normalized_as_in_training():
    assert detector_size(480, 640) == (480, 640)
    assert detector_size(1080, 1920) == (544, 960)
    frame = np.empty((1, 3, 32, 64), np.float32)
    write_for_detector(np.full((50, 90, 3), (255, 0, 0), np.uint8), frame)
    np.testing.assert_allclose(frame[0, :, 7, 9], [(1 - 0.485) / 0.229, -0.456 / 0.224, -0.406 / 0.225], rtol=1e-5)
    line = np.full((1, 3, 48, 192), np.nan, np.float32)
    write_for_classifier(np.full((24, 48, 3), 255, np.uint8), line)
    np.testing.assert_allclose(line[..., :96], 1, atol=1e-6)
    assert not line[..., 96:].any()


@pytest.mark.sample(1)
@pytest.mark.parametrize("size", [(640, 480), (400, 300)], ids=["as the network takes it", "resized"])
def test_the_loop_over_frames_reads_them_in_place(tmp_path, size):
    """A video of the picture, moved from frame to frame."""
    picture = cv2.resize(cv2.imread(str(OCR / "picture.jpg")), size)
    video = tmp_path / "video.avi"
    writer = cv2.VideoWriter(str(video), cv2.VideoWriter_fourcc(*"MJPG"), 10, size)
    for step in range(4):
        writer.write(np.roll(picture, 4 * step, axis=1))
    writer.release()
    command = [sys.executable, OCR.parent / "webcam" / "watch.py", video, "--output", tmp_path / "last.png"]
    child = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert child.returncode == 0, child.stderr
    counts = [int(lines) for lines in re.findall(r"frame \d+: (\d+) lines of text", child.stdout)]
    assert len(counts) == 4 and min(counts) > 3
    assert "bytes copied: 0" in child.stdout
    assert cv2.imread(str(tmp_path / "last.png")).shape == (size[1], size[0], 3)


def test_the_loop_says_what_it_can_open(tmp_path):
    command = [sys.executable, OCR.parent / "webcam" / "watch.py", tmp_path / "none.avi"]
    child = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert child.returncode == 1 and "give the number of a camera" in child.stderr
