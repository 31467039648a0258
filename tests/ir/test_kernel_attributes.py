"""What is written of functions is read back."""

from __future__ import annotations

from landbridge.ir import kernel_attributes
from tests.ir.modules import copying_main


def test_facts_of_functions() -> None:
    function = copying_main()
    assert not kernel_attributes.is_prim(function) and not kernel_attributes.is_in_place(function)
    assert (kernel_attributes.target_number(function), kernel_attributes.moved_bytes(function)) == (0, 0)
    assert kernel_attributes.task_count(function) is None
    kernel_attributes.mark_prim(function)
    kernel_attributes.mark_in_place(function)
    kernel_attributes.set_target_number(function, 2)
    kernel_attributes.set_moved_bytes(function, 64)
    kernel_attributes.set_task_count(function, 0)
    assert kernel_attributes.is_prim(function) and kernel_attributes.is_in_place(function)
    assert (kernel_attributes.target_number(function), kernel_attributes.moved_bytes(function)) == (2, 64)
    assert kernel_attributes.task_count(function) == 0
    kernel_attributes.set_moved_bytes(function, 0)
    assert kernel_attributes.MOVES not in function.attributes
