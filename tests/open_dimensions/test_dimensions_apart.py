"""The node tests of the onnx wheel with all dimensions apart: right, or refused for a reason that the docs have."""

from __future__ import annotations

import re

import pytest

from tests.open_dimensions import apart_cases

#: Refused for another reason, which is said.
OTHERS = re.compile("$^")


@pytest.mark.sample(24)
@pytest.mark.parametrize("name", apart_cases.names())
def test_right_or_refused_for_a_reason(name: str) -> None:
    found = apart_cases.outcome(name)
    if found.kind == "right" or (found.kind == "refused" and (found.reason or OTHERS.search(name))):
        return
    closed = apart_cases.outcome(name, is_apart=False)  # strings, numbers of four bits, what is drawn
    assert closed.kind != "right", f"{found.kind}: {found.why}"
