"""Builds a SPIR-V module: its types, constants, buffers and entry points, each once (SPIR-V 1.5)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from landbridge.executable.spirv import (
    GL_COMPUTE,
    IMAGE_2D,
    MAGIC,
    VERSION_1_5,
    BuiltIn,
    Capability,
    Decoration,
    ImageFormat,
    Op,
    SpirvMode,
    StorageClass,
)

_LOGICAL, _GLSL450 = 0, 1
#: What computing on an element, and having it in a buffer, needs of the device.
_CAPABILITIES = {
    "i8": (Capability.Int8, Capability.StorageBuffer8BitAccess),
    "i16": (Capability.Int16, Capability.StorageBuffer16BitAccess),
    "i64": (Capability.Int64, None),
    "f64": (Capability.Float64, None),
}
#: Formats that every device writes.
_PLAIN_FORMATS = (ImageFormat.Rgba32ui, ImageFormat.Rgba16ui, ImageFormat.Rgba8ui, ImageFormat.R32ui)
_PACK = {"f32": "<f", "f64": "<d", "i8": "<B", "i16": "<H", "i32": "<I", "i64": "<Q"}


class SpirvModule:
    """Ids are given out in order; ``binary`` puts the sections together (SPIR-V specification 1.5, section 2.4).

    Elements are ``i1 i8 i16 i32 i64 f32 f64``; integers have no sign, operations do. ``preserve_nan``: the device keeps
    zeros' signs, infinities and NaNs where a module asks for it.
    """

    def __init__(self, *, preserve_nan: bool = False) -> None:
        self._bound = 1
        self._preserve_nan = preserve_nan
        self._capabilities: dict[Capability, None] = {Capability.Shader: None}
        self._floats: dict[int, None] = {}
        self._known: dict[tuple[object, ...], int] = {}
        self._decorations: list[int] = []
        self._globals: list[int] = []
        self._entries: list[tuple[int, str, tuple[int, ...], tuple[int, int, int]]] = []
        self._functions: list[int] = []
        self._library: int | None = None

    def fresh(self) -> int:
        """Returns a new id."""
        self._bound += 1
        return self._bound - 1

    def need(self, capability: Capability) -> None:
        """Declares that the module needs ``capability``."""
        self._capabilities[capability] = None

    def decorate(self, target: int, decoration: Decoration, *values: int) -> None:
        """Adds ``decoration`` to ``target``."""
        self._decorations += encode(Op.Decorate, target, decoration, *values)

    def library(self) -> int:
        """Returns the id of GLSL.std.450's instructions."""
        if self._library is None:
            self._library = self.fresh()
        return self._library

    def type_of(self, element: str) -> int:
        """Returns the type of a scalar."""
        known = self._known.get(("type", element))
        if known is not None:
            return known
        needed = _CAPABILITIES.get(element)
        if needed:
            self.need(needed[0])
        if element == "i1":
            return self._once(("type", element), Op.TypeBool)
        bits = int(element[1:])
        if element[0] == "f":
            self._floats[bits] = None
            return self._once(("type", element), Op.TypeFloat, bits)
        return self._once(("type", element), Op.TypeInt, bits, 0)

    def void(self) -> int:
        """Returns the type of no value."""
        return self._once(("void",), Op.TypeVoid)

    def pointer(self, storage: StorageClass, pointee: int) -> int:
        """Returns a pointer type."""
        return self._once(("pointer", storage, pointee), Op.TypePointer, storage, pointee)

    def constant(self, value: float | int, element: str) -> int:
        """Returns a constant, with the same id for equal bits."""
        kind = self.type_of(element)
        if element == "i1":
            op = Op.ConstantTrue if value else Op.ConstantFalse
            return self._once(("constant", op), op, before=(kind,))
        words = constant_words(value, element)
        return self._once(("constant", element, words), Op.Constant, *words, before=(kind,))

    def array_variable(self, element: str, count: int, storage: StorageClass) -> tuple[int, int]:
        """Returns type of a pointer to ``count`` elements, and the id of a variable of it in the module (Workgroup)."""
        length = self.constant(count, "i32")
        kind = self._once(("array", element, count), Op.TypeArray, self.type_of(element), length)
        pointer = self.pointer(storage, kind)
        if storage == StorageClass.Function:
            return pointer, self.fresh()
        variable = self.fresh()
        self._globals += encode(Op.Variable, pointer, variable, storage)
        return pointer, variable

    def buffer(self, element: str, binding: int, *, read_only: bool, restrict: bool, exchanged: bool = False) -> int:
        """Returns a storage buffer of ``element``s, bound as ``binding`` of descriptor set 0.

        ``exchanged``: invocations read there what others wrote, after a barrier, which orders Coherent memory alone
        where the memory model is GLSL450 (Vulkan 1.3 specification, appendix "Memory Model").
        """
        needed = _CAPABILITIES.get(element)
        if needed and needed[1]:
            self.need(needed[1])
        pointer = self.pointer(StorageClass.StorageBuffer, self._block(element))
        variable = self.fresh()
        self._globals += encode(Op.Variable, pointer, variable, StorageClass.StorageBuffer)
        self._bind(variable, binding)
        if exchanged:
            self.decorate(variable, Decoration.Coherent)
        if read_only:
            self.decorate(variable, Decoration.NonWritable)
        # Without a decoration, drivers may assume too that buffers do not overlap (SPIR-V specification, section 2.18.2
        # "Aliasing").
        self.decorate(variable, Decoration.Restrict if restrict else Decoration.Aliased)
        return variable

    def image(self, binding: int, written: ImageFormat | None) -> tuple[int, int]:
        """Returns an image of pixels of unsigned integers that a kernel writes in a format, or reads (None), bound as
        ``binding`` of descriptor set 0: its type, and the variable.
        """
        if written not in (None, *_PLAIN_FORMATS):
            self.need(Capability.StorageImageExtendedFormats)
        use, format = (1, ImageFormat.Unknown) if written is None else (2, written)
        number = self.type_of("i32")
        kind = self._once(("image", format), Op.TypeImage, number, IMAGE_2D, 0, 0, 0, use, format)
        pointer = self.pointer(StorageClass.UniformConstant, kind)
        variable = self.fresh()
        self._globals += encode(Op.Variable, pointer, variable, StorageClass.UniformConstant)
        self._bind(variable, binding)
        if written is not None:
            self.decorate(variable, Decoration.NonReadable)
        return kind, variable

    def integers(self, count: int) -> int:
        """Returns the type of a vector of ``count`` integers of 32 bits."""
        return self._once(("vector", count), Op.TypeVector, self.type_of("i32"), count)

    def builtin(self, which: BuiltIn) -> int:
        """Returns the input variable of three integers that the device fills with ``which``."""
        key = ("builtin", which)
        if key not in self._known:
            pointer = self.pointer(StorageClass.Input, self.integers(3))
            variable = self._known[key] = self.fresh()
            self._globals += encode(Op.Variable, pointer, variable, StorageClass.Input)
            self.decorate(variable, Decoration.BuiltIn, which)
        return self._known[key]

    def starts(self, count: int) -> tuple[int, int]:
        """Returns the push constants of a kernel: ``count`` unsigned integers. Type of a pointer to one, and the
        variable.
        """
        number = self.type_of("i32")
        block = self._once(("push", count), Op.TypeStruct, *[number] * count)
        if ("pushed", count) not in self._known:
            self.decorate(block, Decoration.Block)
            for i in range(count):
                self._decorations += encode(Op.MemberDecorate, block, i, Decoration.Offset, 4 * i)
            variable = self._known["pushed", count] = self.fresh()
            pointer = self.pointer(StorageClass.PushConstant, block)
            self._globals += encode(Op.Variable, pointer, variable, StorageClass.PushConstant)
        return self.pointer(StorageClass.PushConstant, number), self._known["pushed", count]

    def entry_point(
        self, name: str, interface: Sequence[int], size: tuple[int, int, int], variables: list[int], body: list[int]
    ) -> None:
        """Adds a kernel called ``name`` of workgroups of ``size``; ``body`` begins after the label of its first
        block.
        """
        nothing = self.void()
        function = self.fresh()
        signature = self._once(("function",), Op.TypeFunction, nothing)
        self._entries.append((function, name, tuple(interface), size))
        self._functions += encode(Op.Function, nothing, function, 0, signature)
        self._functions += [*encode(Op.Label, self.fresh()), *variables, *body]
        self._functions += [*encode(Op.Return), *encode(Op.FunctionEnd)]

    def binary(self) -> bytes:
        """Returns the module's words, little-endian."""
        if self._preserve_nan and self._floats:
            self.need(Capability.SignedZeroInfNanPreserve)
        words: list[int] = []
        for capability in self._capabilities:
            words += encode(Op.Capability, capability)
        if self._library is not None:
            words += encode(Op.ExtInstImport, self._library, *text_words("GLSL.std.450"))
        words += encode(Op.MemoryModel, _LOGICAL, _GLSL450)
        for function, name, interface, _ in self._entries:
            words += encode(Op.EntryPoint, GL_COMPUTE, function, *text_words(name), *interface)
        for function, _, _, size in self._entries:
            words += encode(Op.ExecutionMode, function, SpirvMode.LocalSize, *size)
            for bits in self._floats if self._preserve_nan else ():
                words += encode(Op.ExecutionMode, function, SpirvMode.SignedZeroInfNanPreserve, bits)
        words += [*self._decorations, *self._globals, *self._functions]
        header = [MAGIC, VERSION_1_5, 0, self._bound, 0]
        return np.asarray([*header, *words], "<u4").tobytes()

    def _bind(self, variable: int, binding: int) -> None:
        self.decorate(variable, Decoration.DescriptorSet, 0)
        self.decorate(variable, Decoration.Binding, binding)

    def _block(self, element: str) -> int:
        """Returns the structure that a buffer of ``element``s is."""
        key = ("block", element)
        if key not in self._known:
            array = self._once(("runtime array", element), Op.TypeRuntimeArray, self.type_of(element))
            self.decorate(array, Decoration.ArrayStride, int(element[1:]) // 8)
            block = self._once(key, Op.TypeStruct, array)
            self.decorate(block, Decoration.Block)
            self._decorations += encode(Op.MemberDecorate, block, 0, Decoration.Offset, 0)
        return self._known[key]

    def _once(self, key: tuple[object, ...], op: Op, *operands: int, before: tuple[int, ...] = ()) -> int:
        """Returns the id of a declaration, made on first use; ``before`` are the words before its result."""
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self.fresh()
            self._globals += encode(op, *before, known, *operands)
        return known


def encode(op: Op, *operands: Any) -> list[int]:
    """Returns the words of an instruction."""
    return [(1 + len(operands)) << 16 | op, *operands]


def text_words(text: str) -> tuple[int, ...]:
    """Returns a text as words, ended by a zero byte."""
    raw = text.encode() + b"\0"
    raw += b"\0" * (-len(raw) % 4)
    return struct.unpack(f"<{len(raw) // 4}I", raw)


def constant_words(value: float | int, element: str) -> tuple[int, ...]:
    """Returns the bits of a constant as words; narrow ones fill the low bits of one word."""
    if element[0] == "i":
        value = int(value) & ((1 << int(element[1:])) - 1)
    raw = struct.pack(_PACK[element], float(np.float32(value)) if element == "f32" else value)
    raw += b"\0" * (-len(raw) % 4)
    return struct.unpack(f"<{len(raw) // 4}I", raw)
