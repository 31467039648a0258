"""Facts of a SPIR-V module: its entry points, their bindings, and the features they need of a device.

It covers compute shaders whose resources are storage buffers and images of unsigned integers of descriptor set 0, and
push constants.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from landbridge.executable.spirv import (
    GL_COMPUTE,
    IMAGE_2D,
    IMAGE_FORMATS,
    VERSION_1_4,
    BuiltIn,
    Decoration,
    ImageFormat,
    Op,
    SpirvMode,
    StorageClass,
    instructions,
    text_in,
)
from landbridge.records import record

Shape = tuple[int, int, int]


@record(frozen=True)
class EntryPoint:
    """One kernel. ``bindings`` are numbers in descriptor set 0 in order, ``written`` those it may write.

    ``strides`` are the bytes of an element of each, 1 where it is not a plain array. ``images`` are the bindings that
    are images, with the format of those that are storage images, Unknown for sampled ones. ``push`` has the byte offset
    and the ``struct`` format of each push constant, ``local_size`` the invocations of a workgroup.
    """

    name: str
    local_size: Shape
    bindings: tuple[int, ...]
    strides: tuple[int, ...]
    written: frozenset[int]
    push: tuple[tuple[int, str], ...]
    images: Mapping[int, ImageFormat] = field(default_factory=dict)

    @property
    def buffers(self) -> int:
        """Returns how many of its bindings are storage buffers."""
        return len(self.bindings) - len(self.images)

    @property
    def can_take_starts(self) -> bool:
        """Returns whether it has one unsigned push constant for each buffer, which may give the buffer's first
        element.
        """
        return bool(self.push) and [form for _, form in self.push] == ["<I"] * self.buffers

    @property
    def push_bytes(self) -> int:
        """Returns the bytes of the push constants, a multiple of 4."""
        return -(-max((offset + struct.calcsize(form) for offset, form in self.push), default=0) // 4) * 4


@record(frozen=True)
class ModuleFacts:
    """The ``version`` in the header, what the module needs, and its compute entry points by name."""

    version: int
    capabilities: frozenset[int]
    extensions: frozenset[str]
    entry_points: dict[str, EntryPoint]


@record
class _Reading:
    """The facts that one pass over the instructions gathers, by id."""

    decorations: dict[tuple[int, int], Sequence[int]] = field(default_factory=dict)
    member_offsets: dict[tuple[int, int], int] = field(default_factory=dict)
    read_only_members: set[tuple[int, int]] = field(default_factory=set)
    capabilities: set[int] = field(default_factory=set)
    extensions: set[str] = field(default_factory=set)
    entries: list[tuple[int, str, Sequence[int]]] = field(default_factory=list)
    sizes: dict[int, Shape] = field(default_factory=dict)
    size_ids: dict[int, Sequence[int]] = field(default_factory=dict)
    types: dict[int, tuple[int, Sequence[int]]] = field(default_factory=dict)
    constants: dict[int, int] = field(default_factory=dict)
    composites: dict[int, Sequence[int]] = field(default_factory=dict)
    variables: dict[int, tuple[int, int]] = field(default_factory=dict)


def facts_of(words: Sequence[int]) -> ModuleFacts:
    """Returns the facts of a module; raises ValueError for one that is malformed or has other resources."""
    if words[1] < VERSION_1_4:
        raise ValueError(
            f"it is SPIR-V {words[1] >> 16 & 0xFF}.{words[1] >> 8 & 0xFF}, whose entry points do not list their "
            "resources; make 1.4 or newer (for Vulkan 1.2)"
        )
    reading = _Reading()
    try:
        opcode = Op.FunctionEnd.value
        for opcode, operands in instructions(words):
            take = _TAKE.get(opcode)
            if take is not None:
                take(reading, opcode, operands)
        points = {name: _entry_point(reading, function, name, used) for function, name, used in reading.entries}
    except IndexError:
        raise ValueError("an instruction has too few operands") from None
    if opcode != Op.FunctionEnd:  # drivers would read on
        raise ValueError("a function without an end")
    if not points:
        raise ValueError("it has no compute entry point")
    return ModuleFacts(words[1], frozenset(reading.capabilities), frozenset(reading.extensions), points)


def _entry_point(r: _Reading, function: int, name: str, interface: Sequence[int]) -> EntryPoint:
    bindings: dict[int, bool] = {}
    strides: dict[int, int] = {}
    images: dict[int, ImageFormat] = {}
    push: tuple[tuple[int, str], ...] = ()
    for variable in interface:
        if variable not in r.variables:
            raise ValueError(f"entry point {name!r} lists %{variable}, which is no variable")
        pointer, storage = r.variables[variable]
        pointee = r.types.get(pointer, (0, (0, 0, 0)))[1][2]
        if storage == StorageClass.StorageBuffer:
            binding = _binding(r, variable, name)
            bindings[binding] = not _is_read_only(r, variable, pointee)
            strides[binding] = _stride(r, pointee)
        elif storage == StorageClass.PushConstant:
            push = _push_constants(r, pointee, name)
        elif storage == StorageClass.UniformConstant and pointee in r.types and r.types[pointee][0] == Op.TypeImage:
            binding = _binding(r, variable, name)
            images[binding] = _image_format(r, pointee, name)
            strides[binding] = 1
            bindings[binding] = bool(images[binding]) and (variable, Decoration.NonWritable) not in r.decorations
        elif storage in (StorageClass.Uniform, StorageClass.UniformConstant):
            raise ValueError(f"entry point {name!r} uses %{variable}, which is no storage buffer and no image")
    written = frozenset(number for number, writes in bindings.items() if writes)
    binding_numbers = tuple(sorted(bindings))
    sizes = tuple(strides[number] for number in binding_numbers)
    return EntryPoint(name, _local_size(r, function, name), binding_numbers, sizes, written, push, images)


def _binding(r: _Reading, variable: int, name: str) -> int:
    binding = r.decorations.get((variable, Decoration.Binding))
    chosen = r.decorations.get((variable, Decoration.DescriptorSet))
    if not binding or not chosen or chosen[0] != 0:
        raise ValueError(f"entry point {name!r} uses %{variable}, which is not bound in descriptor set 0")
    return binding[0]


def _image_format(r: _Reading, image: int, name: str) -> ImageFormat:
    """Returns the format of a storage image, Unknown for a sampled one; raises ValueError for unsupported images."""
    operands = r.types[image][1]
    _, sampled, dimensions, _, layers, samples, use, format = (operands[i] for i in range(8))
    number = r.types.get(sampled, (0, ()))
    flat = dimensions == IMAGE_2D and not layers and not samples
    legal = (0,) if use == 1 else IMAGE_FORMATS.values() if use == 2 else ()
    if not flat or number[0] != Op.TypeInt or tuple(number[1][1:]) != (32, 0) or format not in legal:
        raise ValueError(
            f"entry point {name!r} uses image type %{image}; legal: 2-D images of unsigned integers, sampled, or "
            f"written in one of the formats {', '.join(f.name for f in IMAGE_FORMATS.values())}"
        )
    return ImageFormat(format)


def _stride(r: _Reading, block: int) -> int:
    members = r.types.get(block, (0, (0,)))[1][1:]
    declared = r.decorations.get((members[0], Decoration.ArrayStride)) if len(members) == 1 else None
    return declared[0] if declared else 1


def _is_read_only(r: _Reading, variable: int, block: int) -> bool:
    if (variable, Decoration.NonWritable) in r.decorations:
        return True
    members = r.types.get(block, (0, (0,)))[1][1:]
    return bool(members) and all((block, i) in r.read_only_members for i in range(len(members)))


def _push_constants(r: _Reading, block: int, name: str) -> tuple[tuple[int, str], ...]:
    formats = []
    for i, member in enumerate(r.types.get(block, (0, (0,)))[1][1:]):
        opcode, operands = r.types.get(member, (0, ()))
        form = ""
        if opcode == Op.TypeInt:
            form = {8: "b", 16: "h", 32: "i", 64: "q"}.get(operands[1], "")
            form = form if operands[2] else form.upper()
        elif opcode == Op.TypeFloat:
            form = {16: "e", 32: "f", 64: "d"}.get(operands[1], "")
        if not form:
            raise ValueError(f"entry point {name!r} has a push constant that is not a number")
        formats.append((r.member_offsets.get((block, i), 0), f"<{form}"))
    return tuple(formats)


def _local_size(r: _Reading, function: int, name: str) -> Shape:
    for (target, decoration), operands in r.decorations.items():
        if decoration == Decoration.BuiltIn and operands[0] == BuiltIn.WorkgroupSize and target in r.composites:
            return _shape([r.constants.get(c, 0) for c in r.composites[target]])
    if function in r.size_ids:
        return _shape([r.constants.get(c, 0) for c in r.size_ids[function]])
    if function not in r.sizes:
        raise ValueError(f"entry point {name!r} states no workgroup size")
    return r.sizes[function]


def _shape(values: Sequence[int]) -> Shape:
    if len(values) != 3 or min(values) < 1:
        raise ValueError(f"the workgroup size {tuple(values)} is not three numbers over 0")
    return values[0], values[1], values[2]


def _entry(r: _Reading, opcode: int, operands: Sequence[int]) -> None:
    name, count = text_in(operands[2:])
    if operands[0] == GL_COMPUTE:
        r.entries.append((operands[1], name, operands[2 + count :]))


def _mode(r: _Reading, opcode: int, operands: Sequence[int]) -> None:
    if opcode == Op.ExecutionMode and operands[1] == SpirvMode.LocalSize:
        r.sizes[operands[0]] = _shape(operands[2:5])
    elif opcode == Op.ExecutionModeId and operands[1] == SpirvMode.LocalSizeId:
        r.size_ids[operands[0]] = operands[2:5]


def _decorate(r: _Reading, opcode: int, operands: Sequence[int]) -> None:
    r.decorations[operands[0], operands[1]] = operands[2:]


def _decorate_member(r: _Reading, opcode: int, operands: Sequence[int]) -> None:
    if operands[2] == Decoration.Offset:
        r.member_offsets[operands[0], operands[1]] = operands[3]
    elif operands[2] == Decoration.NonWritable:
        r.read_only_members.add((operands[0], operands[1]))


def _type(r: _Reading, opcode: int, operands: Sequence[int]) -> None:
    r.types[operands[0]] = (opcode, operands)


_Take = Callable[[_Reading, int, Sequence[int]], None]
_TAKE: dict[int, _Take] = {
    Op.Capability: lambda r, _, x: r.capabilities.add(x[0]),
    Op.Extension: lambda r, _, x: r.extensions.add(text_in(x)[0]),
    Op.EntryPoint: _entry,
    Op.ExecutionMode: _mode,
    Op.ExecutionModeId: _mode,
    Op.Decorate: _decorate,
    Op.MemberDecorate: _decorate_member,
    Op.Constant: lambda r, _, x: r.constants.__setitem__(x[1], x[2]),
    Op.SpecConstant: lambda r, _, x: r.constants.__setitem__(x[1], x[2]),
    Op.ConstantComposite: lambda r, _, x: r.composites.__setitem__(x[1], x[2:]),
    Op.SpecConstantComposite: lambda r, _, x: r.composites.__setitem__(x[1], x[2:]),
    Op.Variable: lambda r, _, x: r.variables.__setitem__(x[1], (x[0], x[2])),
    **dict.fromkeys(
        (Op.TypeInt, Op.TypeFloat, Op.TypeImage, Op.TypeStruct, Op.TypePointer, Op.TypeArray, Op.TypeRuntimeArray),
        _type,
    ),
}
