"""What is tried where a model cannot be compiled as it is, and what its error says then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

import pytest
from onnx import parser
from xdsl.dialects.builtin import ModuleOp

import landbridge as lb
from landbridge.errors import CompileError, ShapeError, UndecidedSizeError
from landbridge.frontend.onnx.attempts import Attempts
from landbridge.frontend.onnx.graph_walk import Branches
from landbridge.frontend.tried import add_tried
from landbridge.ir.module import IRModule
from landbridge.ir.permissions import Permission, Permissions

P = Permission
MODULE = IRModule(ModuleOp([]), ())


def _attempts(
    uses: Mapping[frozenset[P], set[P]], fits: set[P], *, error: type[CompileError] = ShapeError
) -> tuple[Attempts, list[set[P]]]:
    """Attempts at a model that compiles with the permissions ``fits``; ``uses``: those that a walk has a use for, by
    the permissions that it has. The list receives the permissions of each walk.
    """
    permissions, walked = Permissions(), []

    def build() -> IRModule:
        granted = set(permissions.granted)
        walked.append(granted)
        permissions.useful |= uses.get(frozenset(granted), set())
        if fits <= granted:
            return MODULE
        raise error(f"with {', '.join(sorted(each.name for each in granted)) or 'nothing'}")

    return Attempts(cast(Callable[[], IRModule], build), True, permissions, Branches()), walked


def test_a_model_that_compiles_is_built_once() -> None:
    attempts, walked = _attempts({frozenset(): {P.UNROLL, P.SEPARATE}}, set())
    assert attempts.all() is MODULE
    assert (walked, attempts.failed) == ([set()], [])


def test_permissions_are_granted_from_the_lowest_level_on_and_taken_back() -> None:
    attempts, walked = _attempts({frozenset(): {P.UNROLL, P.SEPARATE}}, {P.SEPARATE, P.UNROLL})
    assert attempts.all() is MODULE
    assert walked == [set(), {P.UNROLL}, {P.RELATE}, {P.UNROLL, P.RELATE}, {P.SEPARATE}, {P.UNROLL, P.SEPARATE}]
    assert attempts.permissions.granted == {P.SEPARATE, P.UNROLL}


@pytest.mark.parametrize(
    ("useful", "tried"),
    [(set(), {P.RELATE}), ({P.UNIFY}, {P.RELATE, P.UNIFY}), ({P.DECIDE}, {P.RELATE, P.DECIDE})],
)
def test_only_what_a_walk_has_found_a_use_for_is_tried(useful: set[P], tried: set[P]) -> None:
    attempts, walked = _attempts({frozenset(): useful}, {P.REFUSE})
    with pytest.raises(ShapeError, match="with nothing"):
        attempts.all()
    assert set().union(*walked) == tried


def test_an_undecided_size_unrolls_no_loop() -> None:
    attempts, walked = _attempts({frozenset(): {P.UNROLL}}, {P.UNROLL}, error=UndecidedSizeError)
    with pytest.raises(UndecidedSizeError, match="with nothing"):
        attempts.all()
    assert walked == [set(), {P.RELATE}]


def test_what_was_tried_is_listed_once_and_shortly() -> None:
    attempts, _ = _attempts({frozenset(): {P.SEPARATE, P.DECIDE, P.HOST}}, {P.REFUSE})
    with pytest.raises(ShapeError, match=r"^with nothing$") as raised:
        attempts.all()
    add_tried(raised.value, ((permission.value, why) for permission, why in attempts.failed))
    _, heading, *lines = str(raised.value).splitlines()
    assert heading == "Tried after that, without success:"
    assert lines[0] == "  - runs test that the extents of inputs fit: with RELATE"
    assert len(lines) == 5
    assert lines[-1].startswith("  - and ")


def test_an_error_has_the_first_cause_and_below_it_what_was_tried() -> None:
    text = """short (float[n, 4] x, float[m, 8] w) => (float[n, k] y) { y = MatMul (x, w) }"""
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {text}')
    with pytest.raises(lb.ShapeError) as raised:
        lb.compile(model, dims={"m": "5..64"})
    first, *rest = str(raised.value).splitlines()
    assert "MatMul" in first
    assert rest[0] == "Tried after that, without success:"
    assert rest[1].startswith("  - runs test that the extents of inputs fit: ")
