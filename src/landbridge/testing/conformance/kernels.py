"""A kernel for tests of launches: ``y = a - b``, made by the code generator of the device's own target kind."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import landbridge as lb
from landbridge.device.api import Event, Region, Space, Stream
from landbridge.device.protocols import DeviceModules, RowTable
from landbridge.errors import CodegenError, TargetError
from landbridge.executable.device_image import DeviceImage, LaunchSequence
from landbridge.testing.conformance.base import ConformanceCase

COUNT = 96  # elements of each operand: no multiple of 64
NBYTES = 4 * COUNT

_VECTOR, _MEMORY = f'tensor<{COUNT}xf32, #lb.vdevice<0, "global">>', f'memref<{COUNT}xf32, "global">'
_PROGRAM = f"""
builtin.module {{
  func.func @main(%a: {_VECTOR}, %b: {_VECTOR}) -> {_VECTOR}
      attributes {{lb.input_names = ["a", "b"], lb.output_names = ["y"]}} {{
    %d = bufferization.alloc_tensor() : {_VECTOR}
    %y = "lb.call"(%a, %b, %d) {{callee = @minus, node = "y", operandSegmentSizes = array<i32: 2, 1>}}
      : ({_VECTOR}, {_VECTOR}, {_VECTOR}) -> {_VECTOR}
    func.return %y : {_VECTOR}
  }}
  func.func @minus(%a: {_MEMORY}, %b: {_MEMORY}, %y: {_MEMORY}) attributes {{lb.prim}} {{
    linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
        iterator_types = ["parallel"]}} ins(%a, %b : {_MEMORY}, {_MEMORY}) outs(%y : {_MEMORY})
        attrs = {{lb.extents = [{COUNT} : i64]}} {{
    ^bb0(%s: f32, %t: f32, %u: f32):
      %d = arith.subf %s, %t fastmath<contract> : f32
      linalg.yield %d : f32
    }}
    func.return
  }}
}}
"""
_images: dict[str, DeviceImage] = {}


@dataclass(frozen=True)
class SuiteKernel:
    """``image`` and its only function's launches, as ``module`` of the device."""

    image: DeviceImage
    sequence: LaunchSequence
    module: object


def numbers(seed: int) -> bytes:
    """``COUNT`` float32 that differ by seed; differences of two such are exact."""
    return struct.pack(f"<{COUNT}f", *(float((seed * 131 + i * 17) % 1021) for i in range(COUNT)))


def minus(a: bytes, b: bytes) -> bytes:
    """What the kernel makes of ``a`` and ``b``."""
    values = zip(struct.unpack(f"<{COUNT}f", a), struct.unpack(f"<{COUNT}f", b), strict=True)
    return struct.pack(f"<{COUNT}f", *(x - y for x, y in values))


class KernelCase(ConformanceCase):
    """A test that launches; of memory that kernels use, scope ``global``."""

    def image(self) -> DeviceImage:
        """The kernel as the code generator makes it; skips the test where nothing makes kernels for the device."""
        self.ability(DeviceModules)
        if self.device.memory_kind().ndim != 1:
            self.skip("has no flat memory of scope 'global'")
        try:
            target = lb.Target.from_device(self.device)
        except TargetError as error:
            self.skip(f"has no target kind: {error}")
        found = _images.get(target.to_json())
        if found is None:
            try:
                executable = lb.compile(_PROGRAM, target)
            except ImportError as error:
                self.skip(f"is not compiled for, as the compiler's packages are not installed: {error}")
            except CodegenError as error:
                self.skip(f"has no kernel of a difference: {error}")
            images = [module.image for module in executable.modules if isinstance(module.image, DeviceImage)]
            if not images:
                self.skip("has a target kind that makes no kernels which it loads")
            found = _images[target.to_json()] = images[0]
        return found

    def kernel(self) -> SuiteKernel:
        """The kernel, loaded."""
        image = self.image()
        (sequence,) = image.functions.values()
        return SuiteKernel(image, sequence, self._loaded(image))

    def launch(
        self, kernel: SuiteKernel, a: Region, b: Region, y: Region, stream: Stream | None = None
    ) -> Event | None:
        """Queue ``y = a - b``; the event of the last launch."""
        buffers = [a, b, y, *(Region(self.alloc(max(1, size))) for size in kernel.sequence.scratch)]
        event = None
        for launch in kernel.sequence.launches:
            args: list[Region | RowTable | int | float] = [buffers[number] for number in launch.args]
            event = self.launch_one(kernel, launch.kernel, launch.grid, launch.block, args, stream)
        return event

    def launch_one(
        self,
        kernel: SuiteKernel,
        name: str,
        grid: Sequence[int],
        block: Sequence[int],
        args: list[Region | RowTable | int | float],
        stream: Stream | None = None,
    ) -> Event | None:
        """Queue one launch."""
        (x, y, z), (i, j, k) = grid, block
        return self.ability(DeviceModules).launch(kernel.module, name, (x, y, z), (i, j, k), args, stream)

    def operand(self, content: bytes) -> Space:
        """A space that holds ``content``."""
        space = self.alloc(len(content))
        self.write(space, content)
        return space

    def _loaded(self, image: DeviceImage) -> object:
        modules = self.ability(DeviceModules)
        return modules.load_module(self.device.index, image.code, image.format, image.options)
