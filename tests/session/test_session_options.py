"""Options of a Session are checked when it is made, also where its programs are bound when sizes are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import parser

import landbridge as lb
from landbridge.errors import BindError, InputError, UnknownDeviceError

HEAD = '<ir_version: 8, opset_import: ["": 18]> '
PROGRAMS = {
    "of one size": "g (float[4] x) => (float[4] y) { y = Relu(x) }",
    "open": "g (float[n] x) => (float[n] y) { y = Relu(x) }",
    "cut": "g (float[n] x) => (int64[1,m] y) { y = NonZero(x) }",
    "cut into two": "g (float[n] x) => (int64[1,m] y) { r = Relu(x)  i = NonZero(r)  y = Neg(i) }",
}
REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"num_threads": 0}, InputError, "num_threads is 0"),
    ({"num_threads": "4"}, InputError, "num_threads is '4'"),
    ({"memory_limit": 1000}, InputError, "memory_limit is 1000; legal: None, or bytes from 1,048,576"),
    ({"memory_limit": True}, InputError, "memory_limit is True"),
    ({"host_access": "all"}, InputError, "host_access 'all' is unknown"),
    ({"device": "nowhere"}, UnknownDeviceError, "unknown device 'nowhere'"),
    ({"device": "sim:lazy"}, BindError, "sim:lazy:0 is not what vdevice 'cpu' was compiled for"),
    ({"devices": {"npu": "cpu"}}, BindError, "no vdevice 'npu'"),
    ({"devices": "npu"}, InputError, "devices='npu' is no mapping of the program's vdevices"),
    ({"memory_cfg": {("cpu:0", "global"): "heap"}}, InputError, "no allocator is called 'heap'"),
    ({"threads": 1}, TypeError, r"Session\.__init__\(\) got an unexpected keyword argument 'threads'"),
]


@pytest.fixture(scope="module", params=PROGRAMS)
def program(request: pytest.FixtureRequest) -> lb.Executable:
    return lb.compile(parser.parse_model(HEAD + PROGRAMS[request.param]))


@pytest.mark.filterwarnings("ignore::landbridge.errors.FallbackWarning")
@pytest.mark.parametrize(("options", "raised", "message"), REFUSED, ids=lambda each: str(each)[:40])
def test_making_it_refuses_what_is_not_legal(
    program: lb.Executable, options: dict[str, Any], raised: type[Exception], message: str
) -> None:
    with pytest.raises(raised, match=message):
        lb.Session(program, **options)


@pytest.mark.filterwarnings("ignore::landbridge.errors.FallbackWarning")
def test_it_stays_on_the_device_that_was_current_when_it_was_made(program: lb.Executable) -> None:
    session = lb.Session(program)
    with lb.set_device("sim:lazy:0"):
        (y,) = session(np.ones(4, np.float32))
    assert str(y.device) == "cpu:0"
    with lb.set_device("sim:lazy:0"), pytest.raises(BindError, match="sim:lazy:0 is not what"):
        lb.Session(program)
