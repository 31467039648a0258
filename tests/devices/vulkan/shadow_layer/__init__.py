"""The shadow layer, built for this machine."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

NAME = "VK_LAYER_LANDBRIDGE_shadow"


def build(folder: Path) -> dict[str, str]:
    """Builds the layer in ``folder``; returns the environment with which the Vulkan loader uses it."""
    source, library = Path(__file__).with_name("shadow_layer.c"), folder / "shadow_layer.so"
    flags = ("-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")
    subprocess.run(["gcc", *flags, "-o", str(library), str(source)], check=True, timeout=60)
    layer = {
        "name": NAME,
        "type": "GLOBAL",
        "library_path": str(library),
        "api_version": "1.3.0",
        "implementation_version": "1",
        "description": "host memory that is not coherent",
    }
    (folder / "shadow_layer.json").write_text(json.dumps({"file_format_version": "1.2.0", "layer": layer}))
    return {"VK_ADD_LAYER_PATH": str(folder), "VK_INSTANCE_LAYERS": NAME}
