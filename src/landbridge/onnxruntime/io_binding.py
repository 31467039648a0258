"""IOBinding: binds inputs and outputs before runs, optionally to memory of the caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from landbridge.array_type import Array
from landbridge.onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument
from landbridge.onnxruntime.memory_info import check_device
from landbridge.onnxruntime.model_facts import NodeArg
from landbridge.onnxruntime.ort_value import OrtValue, array_at
from landbridge.onnxruntime.ort_value_vector import OrtValueVector


class HasArguments(Protocol):
    """The methods of a session that an IOBinding calls."""

    def get_inputs(self) -> list[NodeArg]: ...
    def get_outputs(self) -> list[NodeArg]: ...


class IOBinding:
    """The bound inputs and outputs of ``session``, for ``session.run_with_iobinding``."""

    def __init__(self, session: HasArguments) -> None:
        self._input_names = [value.name for value in session.get_inputs()]
        self._output_names = [value.name for value in session.get_outputs()]
        self._inputs: dict[str, Array] = {}
        self._outputs: dict[str, Array | None] = {}
        self._results: dict[str, OrtValue] = {}

    def bind_cpu_input(self, name: str, arr_on_cpu: Array) -> None:
        """Binds input ``name`` to ``arr_on_cpu``, without a copy: each run reads what it holds then. Raises
        InvalidArgument for a name that the model does not have.
        """
        self._check(name, self._input_names, "input")
        self._inputs[name] = arr_on_cpu

    def bind_input(
        self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int
    ) -> None:
        """Binds input ``name`` to the array of ``shape`` at address ``buffer_ptr``, whose memory the caller keeps
        alive.
        """
        check_device(device_type, device_id)
        self.bind_cpu_input(name, array_at(buffer_ptr, shape, element_type))

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Binds input ``name`` to the memory of ``ortvalue``."""
        self.bind_cpu_input(name, ortvalue.numpy())

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Requests output ``name``. Runs write it to the array of ``shape`` at address ``buffer_ptr``, whose memory the
        caller keeps alive; without one, each run returns it in new memory.

        Raises InvalidArgument for a name that the model does not have, and for an address without shape or dtype.
        """
        check_device(device_type, device_id)
        self._check(name, self._output_names, "output")
        if buffer_ptr is None:
            self._outputs[name] = None
        elif shape is None or element_type is None:
            raise InvalidArgument(f"output {name!r} is bound to memory: shape and element_type are needed, too")
        else:
            self._outputs[name] = array_at(buffer_ptr, shape, element_type)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Makes runs write output ``name`` to the memory of ``ortvalue``."""
        self._check(name, self._output_names, "output")
        self._outputs[name] = ortvalue.numpy()

    def get_outputs(self) -> list[OrtValue]:
        """Returns the requested outputs of the last run, in the order of the requests."""
        return [self._results[name] for name in self._outputs if name in self._results]

    def get_outputs_as_ortvaluevector(self) -> OrtValueVector:
        """Returns the values of ``get_outputs`` as an OrtValueVector."""
        return OrtValueVector(self.get_outputs())

    def copy_outputs_to_cpu(self) -> list[Array]:
        """Returns copies of the values of ``get_outputs`` as arrays."""
        return [value.numpy().copy() for value in self.get_outputs()]

    def clear_binding_inputs(self) -> None:
        """Removes all bound inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Removes all requested outputs."""
        self._outputs.clear()
        self._results.clear()

    def synchronize_inputs(self) -> None:
        """Does nothing, as all bound memory is the host's."""

    def synchronize_outputs(self) -> None:
        """Does nothing, as a run is complete when it returns."""

    def _check(self, name: str, known: Sequence[str], subject: str) -> None:
        if name not in known:
            raise InvalidArgument(f"Failed to find {subject} name: {name}; the model has {', '.join(known)}")

    def run_by(self, results: Callable[[Mapping[str, Array], Any], list[Array]]) -> None:
        """Runs the model by ``results(inputs, out)`` and retains the requested outputs for ``get_outputs``.

        ``out`` is the caller's memory for each output where all outputs are bound to dense, writable memory; the run
        writes it in place. Else it is None, and results are copied to the memory that is bound. Raises InvalidArgument
        where their shape or dtype differs from that of the memory.
        """
        memory = [self._outputs.get(name) for name in self._output_names]
        out = memory if memory and all(array is not None and array.flags.carray for array in memory) else None
        created = dict(zip(self._output_names, results(self._inputs, out), strict=True))
        self._results = {}
        for name, array in self._outputs.items():
            if array is not None and out is None:
                if array.shape != created[name].shape or array.dtype != created[name].dtype:
                    raise InvalidArgument(
                        f"output {name!r} is {created[name].dtype}{list(created[name].shape)}, the memory bound to it "
                        f"{array.dtype}{list(array.shape)}"
                    )
                np.copyto(array, created[name])
            self._results[name] = OrtValue(created[name] if array is None else array)


#: Another name that onnxruntime has for it.
SessionIOBinding = IOBinding
