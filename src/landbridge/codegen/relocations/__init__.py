"""Resolves references between objects, by a table for each instruction set."""

from __future__ import annotations

from landbridge.codegen.relocations.aarch64 import AARCH64
from landbridge.codegen.relocations.linkage import Linkage
from landbridge.codegen.relocations.x86_64 import X86_64

#: The instruction sets whose objects can be linked, by the name
#: that ``landbridge.targets.llvm_cpu.architecture`` gives.
LINKAGES: dict[str, Linkage] = {linkage.isa: linkage for linkage in (X86_64, AARCH64)}
