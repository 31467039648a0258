"""Image formats: the driver's names for pixels, and which of them a device supports."""

from __future__ import annotations

import pyopencl as cl

from landbridge.targets.images import DTYPES, LANES, image_format

#: The channel orders by the number of channels, and the channel types by dtype, with their bytes.
CHANNELS = {1: cl.channel_order.R, 2: cl.channel_order.RG, 4: cl.channel_order.RGBA}
CHANNEL_TYPES = {
    "float32": (cl.channel_type.FLOAT, 4),
    "float16": (cl.channel_type.HALF_FLOAT, 2),
    "int32": (cl.channel_type.SIGNED_INT32, 4),
    "uint32": (cl.channel_type.UNSIGNED_INT32, 4),
    "int8": (cl.channel_type.SIGNED_INT8, 1),
    "uint8": (cl.channel_type.UNSIGNED_INT8, 1),
}


def image_formats(device: cl.Device) -> tuple[str, ...]:
    """Returns the pixel formats that kernels can read, and write, in images of ``device``."""
    kind, context = cl.mem_object_type.IMAGE2D, cl.Context([device])
    found = {
        (known.channel_order, known.channel_data_type)
        for known in cl.get_supported_image_formats(context, cl.mem_flags.READ_WRITE, kind)
    }
    return tuple(
        image_format(dtype, lanes)
        for dtype in DTYPES
        for lanes in LANES
        if (CHANNELS[lanes], CHANNEL_TYPES[dtype][0]) in found
    )
