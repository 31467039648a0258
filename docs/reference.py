"""Builds the API reference from the docstrings: ``python docs/reference.py [DIRECTORY]``, default ``build/reference``.

The pages are those of the public modules. Any warning of the generator ends the build.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pdoc
import pdoc.render

#: What others may import: the package; the contract of devices, targets, code generators and passes; what checks a
#: device. ``!`` leaves modules out that the entry before brings along.
PUBLIC = (
    "landbridge",
    "!landbridge[.]device",
    "landbridge.errors",
    "landbridge.dtypes",
    "landbridge.memory_kind",
    "landbridge.device.api",
    "landbridge.device.attr",
    "landbridge.device.checks",
    "landbridge.device.import_source",
    "landbridge.device.memory_provider",
    "landbridge.device.protocols",
    "landbridge.device.registry",
    "landbridge.device.stream",
    "landbridge.targets",
    "landbridge.tensor.host_view",
    "landbridge.targets.c_compiler",
    "landbridge.codegen.c",
    "!landbridge[.]codegen[.]c[.]",
    "landbridge.codegen.grid",
    "landbridge.codegen.loops",
    "landbridge.codegen.registry",
    "landbridge.executable.device_image",
    "landbridge.executable.executable",
    "landbridge.executable.parts",
    "landbridge.memory.allocators",
    "landbridge.memory.allocation",
    "landbridge.memory.borrowed",
    "landbridge.memory.ledger",
    "landbridge.memory.storage",
    "landbridge.passes.registry",
    "landbridge.planner",
    "!landbridge[.]planner[.]",
    "landbridge.testing.conformance",
    "landbridge.testing.sim_lazy",
    "landbridge.vm.background",
)


def build(directory: Path) -> None:
    """Write the pages to ``directory``; raises the first warning."""
    warnings.simplefilter("error", UserWarning)
    pdoc.render.configure(docformat="restructuredtext")
    pdoc.pdoc(*PUBLIC, output_directory=directory)


if __name__ == "__main__":
    build(Path(sys.argv[1] if len(sys.argv) > 1 else "build/reference"))
