"""Former names of what Tensors do are there, and warn."""

import numpy as np
import pytest

import landbridge as lb


def test_let_go_is_drop_cached() -> None:
    tensor = lb.asarray([1.0, 2.0], dtype="float32")
    with pytest.warns(DeprecationWarning, match=r"call Tensor\.drop_cached"):
        tensor.let_go()
    assert np.asarray(tensor).tolist() == [1.0, 2.0]
