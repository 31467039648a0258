"""The phases of transposed convolutions: every tap of every result element is read once, and no window is too wide."""

from __future__ import annotations

from itertools import product

import pytest

from landbridge.ops.phases import phases

AXES = [*product(range(1, 7), range(5), range(1, 7), range(1, 4))]


@pytest.mark.parametrize("together", [False, True])
def test_the_taps_of_a_result_are_those_that_reach_it(together: bool) -> None:
    for stride, low, kernel, dilation in AXES:
        axis = phases(stride, low, kernel, dilation, together=together)
        for o in range(3 * stride):
            pixel, phase = divmod(o, stride)
            begin = pixel + axis.first + phase // axis.inner * axis.shift
            found = {
                (begin + j * axis.step, t) for j in range(axis.taps) if (t := axis.tap(phase, j)) is not None
            }  # fmt: skip
            wanted = {(i, t) for t in range(kernel) for i in range(-20, 30) if i * stride + t * dilation == o + low}
            assert found == wanted, (stride, low, kernel, dilation, o)
            assert all(i <= pixel + axis.reach for i, _ in found)


def test_a_kernel_of_whole_strides_has_no_tap_in_vain() -> None:
    for stride, kernel in ((2, 2), (2, 4), (3, 6), (8, 16)):
        assert phases(stride, 0, kernel, 1, together=True).taps == kernel // stride
        assert phases(stride, stride // 2 * (stride % 2 == 0), kernel, 1, together=False).taps == kernel // stride


def test_windows_that_begin_together_are_an_element_wider_at_most() -> None:
    for stride, low, kernel, _ in AXES:
        apart, together = (phases(stride, low, kernel, 1, together=t) for t in (False, True))
        assert apart.taps <= together.taps <= -(-kernel // stride) + 1
