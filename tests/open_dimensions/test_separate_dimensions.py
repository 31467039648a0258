"""The node tests of the onnx wheel with all dimensions apart: right, or refused for a reason that the docs have."""

from __future__ import annotations

import re

import pytest

from tests.open_dimensions import separate_cases

#: Refused for another reason, which is said.
OTHERS = re.compile(
    "|".join(
        [
            "^test_(dft|stft)",  # real or complex is two paths, and a program that is cut has one
            "^test_(center_crop_pad|col2im|maxunpool_export)",  # sizes that inputs say have to fit extents
            "^test_range_int32_type_negative_delta",  # a range that counts down, of int32
            "^test_split_zero_size",  # data without elements, cut into parts without
            "^test_affine_grid_.*_expanded",  # how many axes a grid has is decided inside
            "^test_causal_conv_with_state",  # a state that is as long as the kernel, which is open
            "^test_rotary_embedding.*_expanded",  # half of an open head beside tables that are open
        ]
    )
)


@pytest.mark.sample(3, rarer=3)
@pytest.mark.parametrize("name", separate_cases.names())
def test_right_or_refused_for_a_reason(name: str) -> None:
    found = separate_cases.outcome(name)
    if found.kind == "right" or (found.kind == "refused" and (found.reason or OTHERS.search(name))):
        return
    closed = separate_cases.outcome(name, is_separate=False)  # strings, numbers of four bits, what is drawn
    assert closed.kind != "right", f"{found.kind}: {found.why}"
