"""Open programs on two CPU vdevices give what the program of one size on one of them gives."""

from __future__ import annotations

import numpy as np
import pytest

import landbridge as lb
from landbridge.executable.instructions import Call
from tests.open_dimensions.models import convolutions

DIMS = {"N": "1..3", "H": "16..64:8", "W": "8..256:8@64"}


@pytest.mark.sample(1)
@pytest.mark.parametrize("target", ["llvm", "c"])
def test_an_open_program_on_two_devices_equals_one_of_one_size(target: str) -> None:
    proto = convolutions()
    names = [node.name or node.output[0] for node in proto.graph.node]
    places = dict.fromkeys(names[1::2], "b")
    executable = lb.compile(proto, {"a": target, "b": target}, dims=DIMS, place=places)
    on = {executable.vdevices[i.vdevice].name for i in executable.main.instructions if isinstance(i, Call)}
    assert on == {"a", "b"} and executable.is_open
    session = lb.Session(executable, devices={"a": "cpu", "b": "cpu"})
    for shape in ((1, 3, 16, 64), (2, 3, 40, 8), (1, 3, 16, 64)):
        x = np.random.default_rng(shape[2]).standard_normal(shape).astype(np.float32)
        fixed = lb.Session(lb.compile(proto, target, shapes={"x": shape}))
        (found,), (expected,) = session(x), fixed(x)
        np.testing.assert_allclose(np.from_dlpack(found), np.from_dlpack(expected), rtol=0, atol=1e-5)
