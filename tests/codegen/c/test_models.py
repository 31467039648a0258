"""Whole networks: C and LLVM print the same lowered form, so their results differ by rounding alone."""

from __future__ import annotations

import numpy as np
import pytest

import landbridge as lb
from tests.whole_models.random_weights import with_random_weights
from tests.whole_models.real_input import picture_for_detector


@pytest.mark.full
@pytest.mark.sample(1)
@pytest.mark.parametrize(("name", "input_name"), [("squeezenet", "data_0"), ("shufflenet", "gpu_0/data_0")])
def test_c_and_llvm_agree(name: str, input_name: str) -> None:
    x = picture_for_detector(224, 224)
    model = with_random_weights(name, {input_name: x})
    c, llvm = (np.asarray(lb.Session(lb.compile(model, target), num_threads=2)(x)[0]) for target in ("c", "llvm"))
    assert llvm.std() > 0.01 * np.abs(llvm).max()
    assert np.abs(c - llvm).max() <= 1e-5 * np.abs(llvm).max()
