"""The machine that LLVM compiles for, in a form that processes without LLVM can pass on."""

from __future__ import annotations

from landbridge.records import record


@record(frozen=True)
class Machine:
    """A machine for LLVM: triple, CPU name and features (``+avx2,-fma``), as LLVM spells them.

    ``relocation`` is LLVM's model: ``pic``, code that runs at any address, or ``static``.
    """

    triple: str
    cpu: str
    features: str
    relocation: str = "pic"
