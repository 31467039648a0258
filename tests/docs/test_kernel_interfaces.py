"""What docs/kernels-for-your-device.md says of launches, C and SPIR-V is what the generators make."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import landbridge as lb
from landbridge.codegen.vulkan import module_builder
from landbridge.devices.vulkan.spirv_facts import ModuleFacts, facts_of
from landbridge.executable.device_image import DeviceImage, Launch, LaunchSequence
from landbridge.executable.spirv import VERSION_1_5, Capability

PAGE = (Path(__file__).parents[2] / "docs" / "kernels-for-your-device.md").read_text(encoding="utf-8")


def test_the_fields_of_a_launch_are_those_of_the_page() -> None:
    documented = re.findall(r"^\| `(\w+\.\w+)` \|", PAGE, re.MULTILINE)
    there_are = {
        f"{kind.__name__}.{each.name}" for kind in (Launch, LaunchSequence, DeviceImage) for each in fields(kind)
    }
    assert sorted(documented) == sorted(there_are)


def test_every_capability_that_a_module_may_need_is_on_the_page() -> None:
    rows = re.findall(r"^\| (`[A-Z]\w+`(?:, `\w+`)*) \| ", PAGE, re.MULTILINE)
    documented = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    source = Path(module_builder.__file__).read_text(encoding="utf-8")
    assert documented == set(re.findall(r"Capability\.(\w+)", source))
    assert documented <= set(Capability.__members__)


def model(dtype: int, operator: str = "Add") -> ModelProto:
    x, y, z = (helper.make_tensor_value_info(name, dtype, (3, 70)) for name in "xyz")
    nodes = [
        helper.make_node(operator, ["x", "y"], ["s"], name="first"),
        helper.make_node("Transpose", ["s"], ["t"], name="turned"),
        helper.make_node("Transpose", ["t"], ["z"], name="back"),
    ]
    return helper.make_model(
        helper.make_graph(nodes, "g", [x, y], [z]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )


def facts(image: DeviceImage) -> ModuleFacts:
    return facts_of(np.frombuffer(image.code, "<u4").tolist())


@pytest.mark.parametrize(
    ("dtype", "needed", "stride"),
    [
        (TensorProto.FLOAT, set(), 4),
        (TensorProto.INT32, set(), 4),
        (TensorProto.FLOAT16, {"Int16", "StorageBuffer16BitAccess"}, 2),
        (TensorProto.INT64, {"Int64"}, 8),
        (TensorProto.DOUBLE, {"Float64"}, 8),
    ],
)
def test_modules_have_the_interface_of_the_page(dtype: int, needed: set[str], stride: int) -> None:
    executable = lb.compile(model(dtype), "vulkan -fp64=1 -int64=1 -small-elements=1")
    (image,) = (module.image for module in executable.modules if isinstance(module.image, DeviceImage))
    found = facts(image)
    assert found.version == VERSION_1_5 and not found.extensions
    assert {Capability(each).name for each in found.capabilities} == {"Shader", *needed}
    launches = [launch for sequence in image.functions.values() for launch in sequence.launches]
    assert sorted({launch.kernel for launch in launches}) == sorted(found.entry_points)
    for launch in launches:
        entry = found.entry_points[launch.kernel]
        assert entry.local_size == launch.block
        assert entry.bindings == tuple(range(len(launch.args))) and entry.strides == (stride,) * len(launch.args)
        assert entry.push == tuple((4 * number, "<I") for number in range(len(launch.args)))
        assert entry.written == {len(launch.args) - 1}
