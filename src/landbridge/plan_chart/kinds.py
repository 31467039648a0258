"""Classifies the work of an instruction, by its type and by the name of its kernel."""

from __future__ import annotations

from landbridge.executable.instructions import Call, HostCall, If, Instruction, Loop, ToVDevice
from landbridge.plan_chart.arena import Kind

#: Words in names of kernels. A kernel fused of several stages is what the first of these that it contains says.
_CONTRACTIONS = frozenset({"conv", "matmul", "gemm", "einsum", "dft", "stft", "rnn"})
_REDUCTIONS = frozenset(
    {"pool", "reduce", "softmax", "lrn", "sum", "mean", "max", "running", "hardmax", "top", "normalize"}
)
_MOVES = frozenset(
    {"pack", "unpack", "copy", "concat", "transpose", "slice", "gather", "scatter", "pad", "tile", "expand"}
)


def kind_of(instruction: Instruction) -> Kind:
    """Returns the kind of a step; it is elementwise unless a word of its kernel's name says otherwise."""
    match instruction:
        case HostCall():
            return Kind.HOST
        case ToVDevice():
            return Kind.MOVE
        case If() | Loop():
            return Kind.UNKNOWN
        case Call(moves_bytes=moved) if moved:
            return Kind.MOVE
        case Call(function=name):
            words = set(name.split("_"))
            for kind, known in (
                (Kind.CONTRACTION, _CONTRACTIONS),
                (Kind.REDUCTION, _REDUCTIONS),
                (Kind.MOVE, _MOVES),
            ):
                if words & known:
                    return kind
            return Kind.ELEMENTWISE
        case _:
            return Kind.UNKNOWN
