"""DeviceFunction: one kernel of a device, called on existing tensors."""

from __future__ import annotations

from collections.abc import Sequence

from landbridge.errors import InputError
from landbridge.executable.parts import TensorSpec
from landbridge.tensor import Tensor, empty
from landbridge.vm.device_kernels import LoadedKernels
from landbridge.vm.kernel_step import BoundBuffer, Buffer, KernelStep, OwnedBuffer


class DeviceFunction:
    """A function of tensors that runs kernel ``name`` of ``kernels``: inputs first, then the destinations.

    Tensors are dense, on the device, of the dtypes and shapes in ``operands``; nothing is copied or cast. A call
    returns when the device is done, and may be made from one thread at a time. Raises InputError for tensors that do
    not fit.
    """

    def __init__(self, kernels: LoadedKernels, name: str, operands: Sequence[TensorSpec]) -> None:
        self.name, self.operands = name, tuple(operands)
        self._device, self._alignment = kernels.device, kernels.offset_alignment
        sequence = kernels.image.functions[name]
        if sequence.operands != len(self.operands):
            raise InputError(
                f"kernel {name!r}: the program gives it {len(self.operands)} operands, and the code generator of "
                f"target kind {kernels.created_by!r} launches it with {sequence.operands}; compile the model again"
            )
        buffers: list[Buffer] = [BoundBuffer(i, 0, spec.nbytes, True) for i, spec in enumerate(self.operands)]
        self._scratch = [empty((nbytes,), dtype="uint8", device=kernels.device) for nbytes in sequence.scratch]
        for tensor in self._scratch:
            buffers.append(OwnedBuffer(tensor.storage.live_region, tensor.nbytes))
        self._step = KernelStep(kernels.device)
        self._step.add(kernels, sequence.launches, buffers)

    def __call__(self, *tensors: Tensor) -> None:
        if len(tensors) != len(self.operands):
            raise InputError(f"kernel {self.name!r} takes {len(self.operands)} tensors, {len(tensors)} were given")
        for number, (tensor, spec) in enumerate(zip(tensors, self.operands, strict=True)):
            subject = f"kernel {self.name!r}: operand {number} is {spec.dtype}{list(spec.shape)} on {self._device}"
            if not isinstance(tensor, Tensor) or tensor.device != self._device:
                raise InputError(f"{subject}; {tensor!r} is not, make it with device=")
            if (tensor.shape, tensor.dtype) != (spec.shape, spec.dtype) or not tensor.is_contiguous:
                raise InputError(f"{subject}, dense; {tensor!r} was given")
            start = tensor.storage.live_region.byte_offset + tensor.byte_offset
            if start % self._alignment:
                raise InputError(
                    f"{subject}, from a multiple of {self._alignment} bytes on; {tensor!r} is at byte {start}"
                )
        self._step.run(tensors.__getitem__)
