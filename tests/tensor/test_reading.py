"""Reading a Tensor's elements as those of an array."""

from __future__ import annotations

import numpy as np
import pytest

import landbridge as lb


def test_elements_by_index_and_as_lists() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    t = lb.asarray(array)
    assert np.shares_memory(t.numpy(), array)
    assert len(t) == 2
    assert t[1, 2] == 5
    assert t.tolist() == array.tolist()
    assert [row.tolist() for row in t] == array.tolist()
    np.testing.assert_array_equal(t[:, ::2], array[:, ::2])
    with pytest.raises(ValueError, match="size"):
        t.item()
    with pytest.raises(ValueError, match="ambiguous"):
        bool(t)


def test_scalars_are_numbers() -> None:
    t = lb.asarray(np.array(2.5, np.float32))
    assert (float(t), int(t), t.item(), bool(t)) == (2.5, 2, 2.5, True)
    assert not lb.asarray(np.array([0]))
    with pytest.raises(TypeError, match="no length"):
        len(t)


def test_memory_that_the_host_cannot_see_says_the_way_out() -> None:
    t = lb.asarray(np.ones(4, np.float32)).to_device("sim:lazy")
    with pytest.raises(lb.HostViewError, match="to_device"):
        t.numpy()
    assert t.to_device("cpu").tolist() == [1, 1, 1, 1]
