"""Instructions in the order in which they stand, those of branches after their If."""

from __future__ import annotations

from landbridge.executable.instructions import Call, If, flattened


def call(name: str) -> Call:
    return Call(0, name, (), 1)


def test_branches_follow_their_if() -> None:
    inner = If(1, (call("d"),), ())
    outer = If(0, (call("b"), call("c")), (inner, call("e")))
    assert list(flattened((call("a"), outer, call("f")))) == [
        call("a"), outer, call("b"), call("c"), inner, call("d"), call("e"), call("f"),
    ]  # fmt: skip
