"""What LLVM compiles for, for those too who leave that to a process which has LLVM."""

from __future__ import annotations

from landbridge.records import record


@record(frozen=True)
class Machine:
    """What LLVM compiles for: triple, CPU name and features (``+avx2,-fma``), as LLVM spells them."""

    triple: str
    cpu: str
    features: str
