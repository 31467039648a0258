"""Live bytes: between the first and the last step that touch a tensor, each byte once."""

from __future__ import annotations

from landbridge.executable.instructions import (
    AllocStorage,
    AllocTensor,
    Call,
    HostCall,
    If,
    Instruction,
    Loop,
    Slice,
    View,
)
from landbridge.vm.live_bytes import live_bytes
from tests.vm import programs


def live(*instructions: Instruction) -> list[dict[int, int]]:
    return [dict(found) for found in live_bytes(programs.executable({"x": (4,)}, {"y": (4,)}, instructions).main)]


def test_lifetimes_views_and_shared_bytes() -> None:
    assert live(
        AllocStorage(2, 1024, 0, 64),
        AllocStorage(3, 64, 1, 64),
        AllocTensor(4, 2, 0, (16,), "float32"),
        AllocTensor(5, 2, 64, (4,), "float32"),
        AllocTensor(6, 2, 32, (16,), "float32"),  # over the ends of both
        AllocTensor(7, 3, 0, (2,), "float64"),
        Call(0, "f", (0, 4), 1),
        View(8, 4, 16, (4,), "float32"),
        Call(0, "f", (8, 5), 1),  # 4 lives on in its view
        HostCall("g", (5, 7), {}),
        Call(0, "f", (7, 6, 5), 1),
        Call(0, "f", (0, 1), 1),
    ) == [{0: 64}, {0: 80}, {0: 64, 1: 16}, {}]


def test_branches_one_after_the_other() -> None:
    assert live(
        AllocStorage(2, 256, 0, 64),
        AllocTensor(3, 2, 0, (1,), "bool"),
        AllocTensor(4, 2, 64, (16,), "float32"),
        Call(0, "f", (0, 3), 1),
        If(3, (Call(0, "f", (0, 4), 1),), (Call(0, "f", (0, 1), 1), Call(0, "f", (4, 1), 1))),
    ) == [{0: 1}, {0: 64}, {0: 64}, {0: 64}]


def test_what_a_loop_uses_and_did_not_make_is_in_use_until_it_ends() -> None:
    assert live(
        AllocStorage(2, 1024, 0, 64),
        AllocTensor(3, 2, 0, (4,), "float32"),
        AllocTensor(4, 2, 64, (4,), "float32"),
        AllocTensor(5, 2, 128, (8, 2), "float32"),
        Call(0, "f", (0, 3), 1),
        Call(0, "f", (0, 5), 1),
        Loop(8, (Slice(6, 5, 0, 8, (2,), "float32"),), (Call(0, "f", (3, 6, 4), 1), Call(0, "f", (4, 1), 1))),
        Call(0, "f", (0, 1), 1),
    ) == [{0: 16}, {0: 80}, {0: 96}, {0: 96}, {}]
