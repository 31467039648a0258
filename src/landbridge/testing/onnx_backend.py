"""The adapter that ONNX's own test suite runs through: ``onnx.backend.base.Backend`` on a compiled program.

::

    from onnx.backend.test import BackendTest
    from landbridge.testing import onnx_backend

    globals().update(BackendTest(onnx_backend.LandbridgeBackend, __name__).test_cases)

Models are compiled as they are: nothing is frozen, converted or left out, and an unsupported model fails with its own
error. Needs the extra ``compile``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep, namedtupledict

import landbridge as lb


class LandbridgeRep(BackendRep):
    """A compiled model, ready to run: ``executable`` and its ``session``."""

    def __init__(self, executable: lb.Executable) -> None:
        self.executable = executable
        self.session = lb.Session(executable)

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Returns the outputs, as new arrays, for one input or a sequence of all inputs in order.

        Raises InputError where they are of other numbers, shapes or dtypes.
        """
        given = [np.asarray(each) for each in (inputs if isinstance(inputs, list | tuple) else [inputs])]
        names = [spec.name for spec in self.session.outputs]
        results = [np.asarray(result) for result in self.session(*given)]
        outputs: tuple[Any, ...] = namedtupledict("Outputs", names)(*results)
        return outputs


class LandbridgeBackend(Backend):
    """Compiles and runs ONNX models on the host's CPU."""

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Returns whether ``device`` is ``"CPU"``, of any index."""
        return device.partition(":")[0] == "CPU"

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> LandbridgeRep:
        """Compiles ``model``; ``kwargs`` are those of ``lb.compile``. Raises as that does."""
        return LandbridgeRep(lb.compile(model, **kwargs))

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Returns the outputs of a model of ``node`` alone, of ``opset_version`` in ``kwargs`` or the newest of its
        domain.
        """
        super().run_node(node, inputs, device, outputs_info)  # this checks the node
        given = [np.asarray(each) for each in (inputs if isinstance(inputs, list | tuple) else [inputs])]
        names = [name for name in node.input if name]
        opset = kwargs.pop("opset_version", None) or _newest(node)
        graph = onnx.helper.make_graph(
            [node],
            node.op_type,
            [_value(name, each.dtype, each.shape) for name, each in zip(names, given, strict=True)],
            [onnx.ValueInfoProto(name=name) for name in node.output if name],
        )
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid(node.domain, opset)])
        return cls.prepare(onnx.shape_inference.infer_shapes(model), device, **kwargs).run(given)


def _newest(node: onnx.NodeProto) -> int:
    schema: Any = onnx.defs.get_schema(node.op_type, node.domain)
    return max(int(schema.since_version), onnx.defs.onnx_opset_version() if not node.domain else 1)


def _value(name: str, dtype: np.dtype[Any], shape: Sequence[int]) -> onnx.ValueInfoProto:
    return onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(dtype), shape)


is_compatible = LandbridgeBackend.is_compatible
prepare = LandbridgeBackend.prepare
run_model = LandbridgeBackend.run_model
run_node = LandbridgeBackend.run_node
supports_device = LandbridgeBackend.supports_device
