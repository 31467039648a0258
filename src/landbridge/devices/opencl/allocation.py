"""Allocation of OpenCL memory: buffers that the host can map, shared virtual memory, images."""

from __future__ import annotations

from collections.abc import Sequence

import pyopencl as cl

from landbridge.device.api import Device, NdSpace
from landbridge.device.checks import check_request, kind_of
from landbridge.devices.opencl.blocks import BufferBlock, ImageBlock, host_bytes
from landbridge.devices.opencl.driver_errors import driver_call
from landbridge.devices.opencl.image_formats import CHANNEL_TYPES, CHANNELS
from landbridge.devices.opencl.instance import OpenCLInstance
from landbridge.devices.opencl.mapping import mapped_address
from landbridge.errors import DeviceError, InputError, OutOfMemoryError, UnsupportedError
from landbridge.memory_kind import MemoryKind
from landbridge.targets.images import DTYPES, TEXTURE_SCOPE, image_format
from landbridge.targets.opencl import SVM_SCOPE


def alloc_flat(instance: OpenCLInstance, nbytes: int, alignment: int, scope: str) -> BufferBlock:
    """Returns ``nbytes`` bytes of a flat scope, aligned for the host and for kernels. Raises OutOfMemoryError,
    InputError.
    """
    where = f"opencl:{instance.index}"
    kind = kind_of(instance.facts.kinds, scope, where)
    check_request(nbytes, alignment, where)
    if kind.ndim != 1:
        raise UnsupportedError(
            f"opencl:{instance.index}: scope {scope!r} holds images, not bytes; give physical_shape and dtype "
            "(alloc_data_space_nd)"
        )
    alignment = max(alignment, kind.alignment)
    _check_size(instance, kind, nbytes)
    subject = f"{nbytes} bytes of scope {scope!r} on {where}"
    if scope == SVM_SCOPE:
        return _alloc_svm(instance, nbytes, alignment, subject)
    if kind.host_access == "none":  # nobody sees an address, and buffers begin where kernels can use them
        with driver_call(subject):
            buffer = cl.Buffer(instance.context, cl.mem_flags.READ_WRITE, max(1, nbytes))
        return BufferBlock(instance.context, scope, buffer, 0, max(1, nbytes))
    # The driver aligns to the kind's alignment; a larger one is found inside a larger buffer.
    spare = alignment - kind.alignment
    with driver_call(subject):
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR
        buffer = cl.Buffer(instance.context, flags, max(1, nbytes) + spare)
    origin = -mapped_address(instance, buffer) % alignment if spare else 0
    if origin % instance.base_alignment:
        raise DeviceError(
            f"{subject}: the driver maps the buffer where no part aligned to {alignment} can be given to kernels; ask "
            "for "
            f"an alignment of {kind.alignment} at most"
        )
    return BufferBlock(instance.context, scope, buffer, origin, max(1, nbytes))


def _alloc_svm(instance: OpenCLInstance, nbytes: int, alignment: int, subject: str) -> BufferBlock:
    fine = cl.svm_mem_flags.SVM_FINE_GRAIN_BUFFER if instance.facts.kinds[SVM_SCOPE].coherent else 0
    flags = cl.svm_mem_flags.READ_WRITE | fine
    # Drivers need not align beyond the size of their largest type: more is found inside a larger allocation.
    spare = alignment - instance.base_alignment
    with driver_call(subject):
        svm = cl.SVMAllocation(instance.context, max(1, nbytes) + spare, instance.base_alignment, flags)
        origin = -svm.svm_ptr % alignment
        address = svm.svm_ptr + origin
        hosted = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
        # A buffer over the pointer (OpenCL 3.0 specification, section 5.6.1): copies to and from buffers need one.
        buffer = cl.Buffer(instance.context, hosted, hostbuf=host_bytes(address, max(1, nbytes)))
    return BufferBlock(
        instance.context, SVM_SCOPE, buffer, 0, max(1, nbytes), address=address, svm=svm, pointer=address
    )


def alloc_image(instance: OpenCLInstance, device: Device, shape: Sequence[int], dtype: str, scope: str) -> NdSpace:
    """Returns an image of ``shape`` (rows, pixels, lanes of a pixel: 1, 2 or 4), with elements of ``dtype``."""
    kind = kind_of(instance.facts.kinds, scope, f"opencl:{instance.index}")
    extents = tuple(shape)
    if kind.ndim != 3:
        raise UnsupportedError(f"opencl:{instance.index}: scope {scope!r} is flat; images lie in {TEXTURE_SCOPE!r}")
    if len(extents) != 3 or min(extents, default=0) < 1 or extents[2] not in CHANNELS or dtype not in CHANNEL_TYPES:
        raise InputError(
            f"opencl:{instance.index}: an image of {dtype}{list(extents)}; legal: rows, pixels and 1, 2 or 4 lanes, of "
            f"{', '.join(CHANNEL_TYPES)}"
        )
    height, width, lanes = extents
    limits = instance.facts.options["image-height"], instance.facts.options["image-width"]
    if height > limits[0] or width > limits[1]:
        raise InputError(
            f"opencl:{instance.index}: an image of {height} rows of {width} pixels; legal: {limits[0]} of {limits[1]}"
        )
    formats = instance.facts.options["image-formats"]
    if dtype in DTYPES and image_format(dtype, lanes) not in formats:
        raise InputError(
            f"opencl:{instance.index}: an image of {dtype}{list(extents)}, of a format that this driver lacks; legal: "
            f"{', '.join(formats)}"
        )
    channel, itemsize = CHANNEL_TYPES[dtype]
    pitch = width * lanes * itemsize
    _check_size(instance, kind, height * pitch)
    subject = f"an image of {dtype}{list(extents)} on opencl:{instance.index}"
    with driver_call(subject):
        image = cl.create_image(
            instance.context,
            cl.mem_flags.READ_WRITE,
            cl.ImageFormat(CHANNELS[lanes], channel),
            shape=(width, height),
        )
    block = ImageBlock(instance.context, scope, image, height, width, lanes * itemsize)
    return NdSpace(device, scope, block, extents, pitch, row_pitch=pitch)


def _check_size(instance: OpenCLInstance, kind: MemoryKind, nbytes: int) -> None:
    if kind.max_bytes is not None and nbytes > kind.max_bytes:
        raise OutOfMemoryError(
            f"opencl:{instance.index}: {nbytes} bytes asked in one allocation of scope {kind.scope!r}, which has at "
            f"most {kind.max_bytes} (CL_DEVICE_MAX_MEM_ALLOC_SIZE); split the tensor, or place it on the host"
        )
