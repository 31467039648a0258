"""The kernel ``y = a - b`` for tests of launches, made by the code generator of the device's own target kind."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import landbridge as lb
from landbridge.device.api import Event, Region, Space, Stream
from landbridge.device.protocols import DeviceModules, RowTable
from landbridge.errors import CodegenError, PlacementError, TargetError
from landbridge.executable.device_image import DeviceImage, LaunchSequence
from landbridge.records import record
from landbridge.testing.conformance.base import ConformanceCase

COUNT = 96  # elements of each operand: no multiple of 64
NBYTES = 4 * COUNT


def _program(scope: str, shape: tuple[int, ...], separators: tuple[int, ...], operands: str = "%s, %t") -> str:
    """Returns IR of ``y = a - b`` on tensors of ``shape``: ``a`` and ``y`` lie in ``scope``, ``b`` in ordinary
    memory.
    """
    extents, counts = "x".join(map(str, shape)), ", ".join(f"{count} : i64" for count in shape)
    loops, parallel = ", ".join(f"d{i}" for i in range(len(shape))), ", ".join(['"parallel"'] * len(shape))
    same = f"affine_map<({loops}) -> ({loops})>"
    flat, flat_memory = f'tensor<{extents}xf32, #lb.vdevice<0, "global">>', f'memref<{extents}xf32, "global">'
    there, memory, a, y = flat, flat_memory, "%a", "%d"
    move_a = move_y = ""
    if separators:
        axes = f'"{scope}", {list(separators)}'
        there, memory = f"tensor<{extents}xf32, #lb.vdevice<0, {axes}>>", f"memref<{extents}xf32, #lb.space<{axes}>>"
        move_a = f'%p = "lb.to_vdevice"(%a) : ({flat}) -> {there}'
        move_y = f'%q = "lb.to_vdevice"(%d) : ({there}) -> {flat}'
        a, y = "%p", "%q"
    return f"""
builtin.module {{
  func.func @main(%a: {flat}, %b: {flat}) -> {flat}
      attributes {{lb.input_names = ["a", "b"], lb.output_names = ["y"]}} {{
    {move_a}
    %e = bufferization.alloc_tensor() : {there}
    %d = "lb.call"({a}, %b, %e) {{callee = @minus, node = "y", operandSegmentSizes = array<i32: 2, 1>}}
      : ({there}, {flat}, {there}) -> {there}
    {move_y}
    func.return {y} : {flat}
  }}
  func.func @minus(%a: {memory}, %b: {flat_memory}, %y: {memory}) attributes {{lb.prim}} {{
    linalg.generic {{indexing_maps = [{same}, {same}, {same}], iterator_types = [{parallel}]}}
        ins(%a, %b : {memory}, {flat_memory}) outs(%y : {memory}) attrs = {{lb.extents = [{counts}]}} {{
    ^bb0(%s: f32, %t: f32, %u: f32):
      %v = arith.subf {operands} fastmath<contract> : f32
      linalg.yield %v : f32
    }}
    func.return
  }}
}}
"""


_images: dict[str, DeviceImage] = {}


@record(frozen=True)
class SuiteKernel:
    """An ``image``, and its only function's launches, as ``module`` of the device."""

    image: DeviceImage
    sequence: LaunchSequence
    module: object


def float32_bytes(seed: int) -> bytes:
    """Returns ``COUNT`` float32 that differ by seed; differences of two such are exact."""
    return struct.pack(f"<{COUNT}f", *(float((seed * 131 + i * 17) % 1021) for i in range(COUNT)))


def minus(a: bytes, b: bytes) -> bytes:
    """Returns what the kernel computes of ``a`` and ``b``."""
    values = zip(struct.unpack(f"<{COUNT}f", a), struct.unpack(f"<{COUNT}f", b), strict=True)
    return struct.pack(f"<{COUNT}f", *(x - y for x, y in values))


class KernelCase(ConformanceCase):
    """A test that launches kernels; they use memory of scope ``global``."""

    def image(
        self, scope: str = "global", shape: tuple[int, ...] = (COUNT,), separators: tuple[int, ...] = ()
    ) -> DeviceImage:
        """Returns the kernel from the code generator, its first and last operand in ``scope``; skips the test where
        nothing generates such kernels for the device.
        """
        return self._image_of(_program(scope, shape, separators), scope)

    def other_image(self) -> DeviceImage:
        """Returns an image as ``image`` does, of a kernel of the same name that computes ``y = b - a``."""
        return self._image_of(_program("global", (COUNT,), (), "%t, %s"), "global")

    def _image_of(self, program: str, scope: str) -> DeviceImage:
        self.ability(DeviceModules)
        if self.device.memory_kind().ndim != 1:
            self.skip("has no flat memory of scope 'global'")
        try:
            target = lb.Target.from_device(self.device)
        except TargetError as error:
            self.skip(f"has no target kind: {error}")
        found = _images.get(target.to_json() + program)
        if found is None:
            try:
                executable = lb.compile(program, target)
            except ImportError as error:
                self.skip(f"is not compiled for, as the compiler's packages are not installed: {error}")
            except (CodegenError, PlacementError) as error:
                self.skip(f"has no kernel of a difference in scope {scope!r}: {error}")
            images = [module.image for module in executable.modules if isinstance(module.image, DeviceImage)]
            if not images:
                self.skip("has a target kind that makes no kernels which it loads")
            found = _images[target.to_json() + program] = images[0]
        return found

    def kernel(
        self, scope: str = "global", shape: tuple[int, ...] = (COUNT,), separators: tuple[int, ...] = ()
    ) -> SuiteKernel:
        """Loads the kernel that ``image`` returns."""
        return self.loaded(self.image(scope, shape, separators))

    def loaded(self, image: DeviceImage) -> SuiteKernel:
        """Loads ``image`` as a separate module."""
        (sequence,) = image.functions.values()
        modules = self.ability(DeviceModules)
        module = modules.load_module(self.device.index, image.code, image.format, image.options)
        return SuiteKernel(image, sequence, module)

    def launch(
        self,
        kernel: SuiteKernel,
        a: Region | RowTable,
        b: Region,
        y: Region | RowTable,
        stream: Stream | None = None,
    ) -> Event | None:
        """Queues ``y = a - b``; returns the event of the last launch."""
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
        """Queues one launch."""
        (x, y, z), (i, j, k) = grid, block
        return self.ability(DeviceModules).launch(kernel.module, name, (x, y, z), (i, j, k), args, stream)

    def operand(self, content: bytes) -> Space:
        """Returns a space that holds ``content``."""
        space = self.alloc(len(content))
        self.write(space, content)
        return space
