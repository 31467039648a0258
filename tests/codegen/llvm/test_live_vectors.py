"""Vectors that are live at each line of LLVM IR, and pairs of them while there are registers."""

from __future__ import annotations

from landbridge.codegen.llvm.live_vectors import LiveVectors

#: ``%a`` is used by a lane of it until the end; ``%b`` and ``%c`` once each.
LINES = [
    "  %z = load <4 x float>, ptr %p",
    "  %a = load <4 x float>, ptr %p",
    "  %l = extractelement <4 x float> %a, i64 0",
    "  %b = load <4 x float>, ptr %p",
    "  %d = fadd <4 x float> %b, %b",
    "  %c = load <4 x float>, ptr %p",
    "  %e = fadd <4 x float> %c, %d",
    "  %f = insertelement <4 x float> poison, float %l, i64 0",
    "  %g = fadd <4 x float> %f, %e",
]


def test_a_pair_is_live_until_the_last_use_of_either() -> None:
    # %a and %b with %c, from the load of %b to the use of %c; 5 others
    assert not LiveVectors(LINES, 1, 5).join("%b", "%c", 7)
    assert LiveVectors(LINES, 1, 5).join("%b", "%c", 8)


def test_what_does_not_fit_is_not_counted() -> None:
    live = LiveVectors(LINES, 1, 5)
    assert not live.join("%a", "%c", 7)
    assert live.join("%b", "%c", 8)
