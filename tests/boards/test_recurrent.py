"""Recurrent layers, compiled here and run on the board, against onnxruntime."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

import landbridge as lb
from tests.boards.board import ProgramRunner
from tests.ops.recurrent_models import GATES, feeds_of, network
from tests.ops.test_recurrent import TOLERANCE


@pytest.mark.parametrize("kind", GATES)
def test_steps_on_the_board(on_board: ProgramRunner, kind: str) -> None:
    model = network(kind, 9, 3, 5, 24, "bidirectional", states=True, lengths=True)
    feeds = feeds_of(model)
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    for found, wanted in zip(on_board(lb.compile(model, "raspberry-pi-4"), feeds), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=TOLERANCE)
