"""Numbers of workgroups are numbers, or Sizes among those that a function takes."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import FuncOp

from landbridge.codegen.launch_sizes import as_word, over_words
from landbridge.errors import CodegenError
from landbridge.ir.kernel_attributes import set_sizes
from landbridge.sizes.size import dimension

W, H = dimension("W"), dimension("H", 8, 64, 8)


@pytest.fixture
def function() -> FuncOp:
    made = FuncOp("f", ([], []))
    set_sizes(made, [W * H, W])
    return made


def test_a_size_that_the_function_takes_is_its_word(function: FuncOp) -> None:
    assert over_words(function, W) == as_word(1)
    assert over_words(function, H * W) == as_word(0)


def test_a_number_stays(function: FuncOp) -> None:
    assert over_words(function, 7) == 7


def test_another_size_is_refused(function: FuncOp) -> None:
    with pytest.raises(CodegenError, match=r"function 'f': H/8 .* takes no such word; it takes (W\*H|H\*W), W"):
        over_words(function, H // 8)
