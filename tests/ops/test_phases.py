"""The phases of transposed convolutions: every tap of every result element is read once, and no window is too wide."""

from __future__ import annotations

from itertools import product

from landbridge.ops.phases import phases

AXES = [*product(range(1, 7), range(5), range(1, 7), range(1, 4))]


def test_the_taps_of_a_result_are_those_that_reach_it() -> None:
    for stride, low, kernel, dilation in AXES:
        axis = phases(stride, low, kernel, dilation)
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
        assert phases(stride, 0, kernel, 1).taps == kernel // stride
        assert phases(stride, stride // 2 * (stride % 2 == 0), kernel, 1).taps == kernel // stride
