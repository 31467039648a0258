"""Images: 2-D spaces of pixels in the driver's own order, the scope ``global.texture``.

Their formats are of unsigned integers, whatever they hold: kernels see the bits of elements, which no driver converts.
They stay in the layout "general", which every use allows (Vulkan 1.3 specification, section 12.4 "Image Layouts").
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

from landbridge.device.api import Device, NdSpace
from landbridge.device.pixels import PixelRows
from landbridge.devices.vulkan import flags, structs_image, structs_work
from landbridge.devices.vulkan.allocation import Allocation
from landbridge.devices.vulkan.driver_objects import DriverObjects
from landbridge.devices.vulkan.logical_device import LogicalDevice
from landbridge.devices.vulkan.memory_uses import UsedMemory
from landbridge.devices.vulkan.result import check
from landbridge.devices.vulkan.steps import MemoryLocation
from landbridge.devices.vulkan.structs_device import VkExtent3D
from landbridge.dtypes import dtype as dtype_facts
from landbridge.errors import InputError, OutOfMemoryError
from landbridge.executable.spirv import IMAGE_FORMATS, ImageFormat
from landbridge.targets.images import LANES, TEXTURE_SCOPE

#: The VkFormat for each format name of shaders.
_FORMATS = {
    ImageFormat.R8ui: 13,
    ImageFormat.Rg8ui: 20,
    ImageFormat.Rgba8ui: 41,
    ImageFormat.R16ui: 74,
    ImageFormat.Rg16ui: 81,
    ImageFormat.Rgba16ui: 95,
    ImageFormat.R32ui: 98,
    ImageFormat.Rg32ui: 101,
    ImageFormat.Rgba32ui: 107,
}
DTYPES = ("uint8", "int8", "uint16", "int16", "float16", "uint32", "int32", "float32")
#: The bytes of a row of the widest image that any driver has today, 32768 pixels of 16 bytes.
LARGEST_ROW = 1 << 19


class Image(PixelRows, UsedMemory):
    """An image of ``height`` rows of ``width`` pixels of ``pixel_bytes``; byte offsets count them as if rows were
    dense.

    ``view`` is the argument of kernels, 0 where they get none, and ``usage`` what the image is for.
    """

    __slots__ = ("format", "height", "image", "pixel_bytes", "usage", "view", "width")

    def __init__(
        self,
        device: DriverObjects,
        created: tuple[int, int, int],
        shape: tuple[int, int, int],
        format: ImageFormat,
        usage: int,
    ) -> None:
        """Take the driver's image, memory and view ``created``; ``shape`` is rows, pixels and the bytes of a pixel."""
        height, width, pixel_bytes = shape
        self.image, memory, self.view = created
        objects = (("ImageView", self.view), ("Image", self.image), ("Memory", memory))
        super().__init__(device, height * width * pixel_bytes, tuple(o for o in objects if o[1]))
        self.format = format
        self.usage = usage
        self.height = height
        self.width = width
        self.pixel_bytes = pixel_bytes

    def extent(self, offset: int, nbytes: int) -> tuple[structs_image.VkOffset3D, VkExtent3D]:
        """Returns the first pixel and the size of bytes that ``check_pixels`` accepted."""
        first, size = self.block(offset, nbytes)
        return structs_image.VkOffset3D(*first, 0), VkExtent3D(*size, 1)


def alloc_image(device: LogicalDevice, owner: Device, shape: Sequence[int], dtype: str, scope: str) -> NdSpace:
    """Returns a Space of ``owner`` in ``scope``, which must hold images: ``shape`` elements of ``dtype``."""
    kind = device.kinds.get(scope)
    if kind is None or kind.ndim == 1:
        reason = "has no memory scope" if kind is None else "holds bytes, not images, in scope"
        raise InputError(f"{device.name} {reason} {scope!r}; images lie in {TEXTURE_SCOPE!r}")
    device.collect()
    image = _allocate(device, shape, dtype)
    return NdSpace(owner, scope, image, tuple(shape), image.row_pitch, row_pitch=image.row_pitch)


def _allocate(device: LogicalDevice, shape: Sequence[int], dtype: str) -> Image:
    """Returns an image of ``shape`` (rows, pixels, lanes of a pixel: 1, 2 or 4) elements of ``dtype``, undefined.

    Raises InputError for a shape or dtype that no image has, OutOfMemoryError when the memory is not there.
    """
    extents = tuple(shape)
    if len(extents) != 3 or min(extents) < 1 or extents[2] not in LANES or dtype not in DTYPES:
        raise InputError(
            f"{device.name}: an image of {dtype}{list(extents)}; legal: rows, pixels and 1, 2 or 4 lanes, of "
            f"{', '.join(DTYPES)}"
        )
    height, width, lanes = extents
    most = device.physical.limits.maxImageDimension2D
    if height > most or width > most:
        raise InputError(f"{device.name}: an image of {height} rows of {width} pixels; legal: {most} of {most}")
    itemsize = dtype_facts(dtype).itemsize
    format = IMAGE_FORMATS[itemsize, lanes]
    features = device.format_features(_FORMATS[format])
    if features & flags.FORMAT_TRANSFER != flags.FORMAT_TRANSFER:
        raise InputError(
            f"{device.name} has no images of {lanes} lanes of {dtype} that can be copied; take other lanes"
        )
    usage = flags.IMAGE_TRANSFER
    usage |= flags.IMAGE_SAMPLED if features & flags.FORMAT_SAMPLED else 0
    usage |= flags.IMAGE_STORAGE if features & flags.FORMAT_STORAGE else 0
    request = structs_image.VkImageCreateInfo(
        imageType=flags.IMAGE_2D,
        format=_FORMATS[format],
        extent=VkExtent3D(width, height, 1),
        mipLevels=1,
        arrayLayers=1,
        samples=flags.IMAGE_SAMPLES_1,
        usage=usage,
    )
    image = device.create("Image", request)
    memory = view = 0
    try:
        memory = _bind(device, image)
        if usage & (flags.IMAGE_SAMPLED | flags.IMAGE_STORAGE):
            view = _view(device, image, _FORMATS[format])
        created = Image(device, (image, memory, view), (height, width, lanes * itemsize), format, usage)
        device.submit(device.stream, [_Prepare(created)]).synchronize()
    except BaseException:
        for kind, handle in (("ImageView", view), ("Image", image), ("Memory", memory)):
            if handle:
                device.destroy(kind, handle)
        raise
    return created


def copy_pixels(device: DriverObjects, commands: int, src: MemoryLocation, dst: MemoryLocation, nbytes: int) -> None:
    """Append a copy with an image at one end at least; both ends were checked."""
    source, target = src.memory, dst.memory
    layout = flags.IMAGE_LAYOUT_GENERAL
    layers = structs_image.VkImageSubresourceLayers(flags.IMAGE_ASPECT_COLOR, 0, 0, 1)
    if isinstance(source, Image) and isinstance(target, Image):
        (start, extent), (to, _) = source.extent(src.offset, nbytes), target.extent(dst.offset, nbytes)
        pixels = structs_image.VkImageCopy(layers, start, layers, to, extent)
        device.calls.vkCmdCopyImage(commands, source.image, layout, target.image, layout, 1, ctypes.byref(pixels))
    elif isinstance(source, Image) and isinstance(target, Allocation):
        start, extent = source.extent(src.offset, nbytes)
        part = structs_image.VkBufferImageCopy(dst.offset, 0, 0, layers, start, extent)
        device.calls.vkCmdCopyImageToBuffer(commands, source.image, layout, target.buffer, 1, ctypes.byref(part))
    elif isinstance(source, Allocation) and isinstance(target, Image):
        start, extent = target.extent(dst.offset, nbytes)
        part = structs_image.VkBufferImageCopy(src.offset, 0, 0, layers, start, extent)
        device.calls.vkCmdCopyBufferToImage(commands, source.buffer, target.image, layout, 1, ctypes.byref(part))


def check_pixels(ends: Sequence[MemoryLocation], nbytes: int) -> None:
    """Raises InputError unless the driver can copy these bytes: between images, or an image and a buffer or the
    host."""
    images = [end.memory for end in ends if isinstance(end.memory, Image)]
    for end in ends:
        if isinstance(end.memory, Image):
            end.memory.check_pixels(end.offset, nbytes)
        elif images and isinstance(end.memory, Allocation) and end.offset % max(4, images[0].pixel_bytes):
            raise InputError(
                f"vulkan: pixels of {images[0].pixel_bytes} bytes cannot be copied at byte {end.offset} of a buffer; "
                f"legal: a multiple of {max(4, images[0].pixel_bytes)}"
            )
    if len(images) == 2 and (images[0].pixel_bytes, images[0].width) != (images[1].pixel_bytes, images[1].width):
        raise InputError("vulkan: pixels are copied between images of one width and one size of pixels; use a buffer")


class _Prepare:
    """A Step that puts a new image in its permanent layout."""

    def __init__(self, image: Image) -> None:
        self._image = image

    @property
    def places(self) -> tuple[MemoryLocation, ...]:
        """Returns the image."""
        return (MemoryLocation(self._image, 0),)

    @property
    def uses(self) -> Sequence[tuple[UsedMemory, bool]]:
        """Returns the image, which it writes."""
        return ((self._image, True),)

    def moved(self, places: Sequence[MemoryLocation]) -> _Prepare:
        """Returns this step, which cannot move."""
        return self

    def encode(self, device: DriverObjects, commands: int) -> Callable[[], None] | None:
        """Append one barrier."""
        barrier = structs_image.VkImageMemoryBarrier(
            dstAccessMask=flags.ACCESS_READ | flags.ACCESS_WRITE,
            newLayout=flags.IMAGE_LAYOUT_GENERAL,
            srcQueueFamilyIndex=flags.QUEUE_FAMILY_IGNORED,
            dstQueueFamilyIndex=flags.QUEUE_FAMILY_IGNORED,
            image=self._image.image,
            subresourceRange=_whole(),
        )
        stages = (flags.STAGE_TRANSFER, flags.STAGE_TRANSFER | flags.STAGE_COMPUTE)
        device.calls.vkCmdPipelineBarrier(commands, *stages, 0, 0, None, 0, None, 1, ctypes.byref(barrier))
        return None


def _whole() -> structs_image.VkImageSubresourceRange:
    return structs_image.VkImageSubresourceRange(flags.IMAGE_ASPECT_COLOR, 0, 1, 0, 1)


def _view(device: DriverObjects, image: int, format: int) -> int:
    """Returns a view of all of ``image``, the argument of kernels."""
    request = structs_image.VkImageViewCreateInfo(
        image=image, viewType=flags.IMAGE_VIEW_2D, format=format, subresourceRange=_whole()
    )
    return device.create("ImageView", request)


def _bind(device: DriverObjects, image: int) -> int:
    """Bind new memory to ``image``, the device's own where there is such."""
    needs = structs_work.VkMemoryRequirements()
    device.calls.vkGetImageMemoryRequirements(device.handle, image, ctypes.byref(needs))
    fitting = [t for t in device.physical.memory_types if needs.memoryTypeBits >> t.index & 1]
    if not fitting:
        raise InputError(f"{device.name} has no memory for this image; take another shape")
    if needs.size > device.physical.max_allocation:
        raise OutOfMemoryError(
            f"{device.name}: an image of {needs.size} bytes asked; one allocation has at most "
            f"{device.physical.max_allocation} (maxMemoryAllocationSize); take a smaller shape"
        )
    best = max(fitting, key=lambda t: (t.has(flags.MEMORY_DEVICE_LOCAL), t.heap_bytes))
    memory = device.create(
        "Memory", structs_work.VkMemoryAllocateInfo(allocationSize=needs.size, memoryTypeIndex=best.index)
    )
    try:
        check(device.calls.vkBindImageMemory(device.handle, image, memory, 0), f"{device.name}: binding an image")
    except BaseException:
        device.destroy("Memory", memory)
        raise
    return memory
