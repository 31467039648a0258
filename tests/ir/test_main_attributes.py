"""What is written of @main is read back."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr

from landbridge.errors import CompileError
from landbridge.ir import main_attributes
from landbridge.ir.types import VDeviceAttr
from tests.ir.modules import copying_main


def test_names_of_inputs_and_outputs() -> None:
    function = copying_main()
    assert main_attributes.io_names(function) == (("input_0",), ("output_0",))
    main_attributes.set_io_names(function, ["x"], ["y"])
    assert main_attributes.io_names(function) == (("x",), ("y",))
    main_attributes.set_io_names(function, [], [])
    assert main_attributes.io_names(function) == ((), ()), "names that are stated count, even none"
    assert main_attributes.parameter_names(function) == ()
    main_attributes.set_parameter_names(function, ["w"])
    assert main_attributes.parameter_names(function) == ("w",)


def test_requests_are_taken_once() -> None:
    function = copying_main()
    main_attributes.set_place_requests(function, {"conv*": VDeviceAttr.of(1, "global.vtcm")})
    main_attributes.set_spill_requests(function, {"global.vtcm": "global"})
    assert main_attributes.take_place_requests(function) == {"conv*": VDeviceAttr.of(1, "global.vtcm")}
    assert main_attributes.take_spill_requests(function) == {"global.vtcm": "global"}
    assert main_attributes.take_place_requests(function) == main_attributes.take_spill_requests(function) == {}
    assert not function.attributes


def test_frames() -> None:
    function = copying_main()
    main_attributes.set_frame_layouts(function, {"x": ((2, 3), (4, 1)), "y": ((2,), ())})
    assert main_attributes.frame_layouts(function) == {"x": ((2, 3), (4, 1)), "y": ((2,), ())}
    function.attributes[main_attributes.FRAMES] = DictionaryAttr({"x": ArrayAttr([])})
    with pytest.raises(CompileError, match=r"lb\.frames of 'x'.*two lists of integers"):
        main_attributes.frame_layouts(function)
