"""Makes a folder with a page that finds text in pictures, in the browser: no server computes anything.

    python examples/browser/build.py site && python -m http.server --directory site

A PP-OCR network is compiled to WebAssembly. Open http://localhost:8000 and choose a picture.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

import landbridge as lb
from landbridge.executable.wasm_export import export_wasm

HERE = Path(__file__).parent
OCR = HERE.parent / "ocr"
sys.path.insert(0, str(OCR))

from wheel_models import DETECT, PP_OCR, wheel_model  # noqa: E402  # of the other example

#: Height and width of the picture that the network gets.
SIDE = 640


def build(site: Path) -> None:
    """Writes the page, the network and a picture to ``site``."""
    executable = lb.compile(wheel_model(PP_OCR, DETECT), target="wasm", shapes={"x": (1, 3, SIDE, SIDE)})
    for file in export_wasm(executable, site, "detect"):
        print(f"{file}: {file.stat().st_size:,} bytes")
    for source in (HERE / "index.html", HERE / "text_boxes.mjs", OCR / "picture.jpg"):
        shutil.copy(source, site)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Make a page that finds text in pictures.")
    parser.add_argument("site", nargs="?", type=Path, default=Path("site"))
    build(parser.parse_args().site)
