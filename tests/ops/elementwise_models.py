"""Models of one elementwise operator, compiled for each kind of target and run on arrays of any length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import helper

import landbridge as lb
from landbridge.targets import Target
from tests.devices.present import first_instance

Array = np.ndarray[Any, Any]
KINDS = ("llvm", "c", "opencl", "vulkan")
OPSET = 24


@cache
def target_of(kind: str) -> tuple[Target, Any]:
    """The Target of this machine's first device of ``kind``, and that device; skips the test where there is none.

    CPUs, also those that drive a device, keep denormal numbers: bounds of accuracy are stated for targets that do. Text
    of a target in place of its kind is taken as it is.
    """
    if kind in ("llvm", "c"):
        return Target(f"{kind} -denormals=keep"), None
    if kind not in KINDS:
        return Target(kind), None
    device = first_instance(kind)
    return Target(Target.from_device(device), host="llvm -denormals=keep"), device


def model_of(
    op: str, inputs: Sequence[Array], output: Any, attributes: Mapping[str, Any] | None = None, opset: int = OPSET
) -> onnx.ModelProto:
    """A model of one node over vectors of the lengths and dtypes of ``inputs``."""
    names = [f"x{i}" for i in range(len(inputs))]
    node = helper.make_node(op, names, ["y"], **dict(attributes or {}))
    kinds = [helper.np_dtype_to_tensor_dtype(a.dtype) for a in inputs]
    values = [helper.make_tensor_value_info(n, k, a.shape) for n, k, a in zip(names, kinds, inputs, strict=True)]
    made = helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(np.dtype(output)), inputs[0].shape)
    graph = helper.make_graph([node], op, values, [made])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=11)


class OneOperator:
    """One operator, compiled for vectors of one length: call it on arrays of that length."""

    def __init__(
        self,
        kind: str,
        op: str,
        inputs: Sequence[Array],
        output: Any,
        attributes: Mapping[str, Any] | None = None,
        opset: int = OPSET,
    ) -> None:
        target, device = target_of(kind)
        self.executable = lb.compile(model_of(op, inputs, output, attributes, opset), target)
        self.session = lb.Session(self.executable) if device is None else lb.Session(self.executable, device=device)

    def __call__(self, *inputs: Array) -> Array:
        for i, a in enumerate(inputs):
            self.session.set_input(f"x{i}", a)
        self.session.run()
        return np.array(self.session.get_output(0).to_device("cpu"))
