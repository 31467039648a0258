"""SPIR-V as data: the opcodes of its instructions, the words of a module, and its text.

Numbers are those of the SPIR-V specification 1.5, sections 2.3 "Physical Layout" and 3 "Binary Form".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from enum import IntEnum

MAGIC = 0x07230203
HEADER_WORDS = 5
VERSION_1_4 = 0x00010400
VERSION_1_5 = 0x00010500

Op = IntEnum(
    "Op",
    {
        "Undef": 1, "Source": 3, "Name": 5, "MemberName": 6, "Extension": 10, "ExtInstImport": 11, "ExtInst": 12,
        "MemoryModel": 14, "EntryPoint": 15, "ExecutionMode": 16, "Capability": 17, "TypeVoid": 19, "TypeBool": 20,
        "TypeInt": 21, "TypeFloat": 22, "TypeVector": 23, "TypeImage": 25, "TypeArray": 28, "TypeRuntimeArray": 29,
        "TypeStruct": 30, "TypePointer": 32, "TypeFunction": 33, "ConstantTrue": 41, "ConstantFalse": 42,
        "Constant": 43, "ConstantComposite": 44, "ConstantNull": 46, "SpecConstantTrue": 48, "SpecConstantFalse": 49,
        "SpecConstant": 50, "SpecConstantComposite": 51, "SpecConstantOp": 52, "Function": 54,
        "FunctionParameter": 55, "FunctionEnd": 56, "FunctionCall": 57, "Variable": 59, "Load": 61, "Store": 62,
        "CopyMemory": 63, "AccessChain": 65, "InBoundsAccessChain": 66, "Decorate": 71, "MemberDecorate": 72,
        "VectorExtractDynamic": 77, "VectorInsertDynamic": 78, "VectorShuffle": 79, "CompositeConstruct": 80,
        "CompositeExtract": 81, "CompositeInsert": 82, "CopyObject": 83, "ImageFetch": 95, "ImageWrite": 99,
        "ConvertFToU": 109, "ConvertFToS": 110,
        "ConvertSToF": 111, "ConvertUToF": 112, "UConvert": 113, "SConvert": 114, "FConvert": 115, "Bitcast": 124,
        "SNegate": 126, "FNegate": 127, "IAdd": 128, "FAdd": 129, "ISub": 130, "FSub": 131, "IMul": 132, "FMul": 133,
        "UDiv": 134, "SDiv": 135, "FDiv": 136, "UMod": 137, "SRem": 138, "SMod": 139, "FRem": 140, "FMod": 141,
        "VectorTimesScalar": 142, "Dot": 148, "UMulExtended": 151, "SMulExtended": 152, "Any": 154, "All": 155,
        "IsNan": 156, "IsInf": 157, "LogicalEqual": 164, "LogicalNotEqual": 165, "LogicalOr": 166, "LogicalAnd": 167,
        "LogicalNot": 168, "Select": 169, "IEqual": 170, "INotEqual": 171, "UGreaterThan": 172, "SGreaterThan": 173,
        "UGreaterThanEqual": 174, "SGreaterThanEqual": 175, "ULessThan": 176, "SLessThan": 177, "ULessThanEqual": 178,
        "SLessThanEqual": 179, "FOrdEqual": 180, "FUnordEqual": 181, "FOrdNotEqual": 182, "FUnordNotEqual": 183,
        "FOrdLessThan": 184, "FUnordLessThan": 185, "FOrdGreaterThan": 186, "FUnordGreaterThan": 187,
        "FOrdLessThanEqual": 188, "FUnordLessThanEqual": 189, "FOrdGreaterThanEqual": 190,
        "FUnordGreaterThanEqual": 191, "ShiftRightLogical": 194, "ShiftRightArithmetic": 195, "ShiftLeftLogical": 196,
        "BitwiseOr": 197, "BitwiseXor": 198, "BitwiseAnd": 199, "Not": 200, "BitCount": 205, "ControlBarrier": 224,
        "MemoryBarrier": 225, "Phi": 245, "LoopMerge": 246, "SelectionMerge": 247, "Label": 248, "Branch": 249,
        "BranchConditional": 250, "Switch": 251, "Return": 253, "ReturnValue": 254, "Unreachable": 255,
        "ExecutionModeId": 331,
    },
)  # fmt: skip


class Capability(IntEnum):
    """Capabilities of the device that a module requires."""

    Shader = 1
    Float16 = 9
    Float64 = 10
    Int64 = 11
    Int16 = 22
    Int8 = 39
    StorageImageExtendedFormats = 49
    StorageBuffer16BitAccess = 4433
    StorageBuffer8BitAccess = 4448
    SignedZeroInfNanPreserve = 4466


class StorageClass(IntEnum):
    """The storage class of a variable."""

    UniformConstant = 0
    Input = 1
    Uniform = 2
    Workgroup = 4
    Function = 7
    PushConstant = 9
    StorageBuffer = 12


class Decoration(IntEnum):
    """Decorations of a value, a type or a member."""

    Block = 2
    ArrayStride = 6
    BuiltIn = 11
    Restrict = 19
    Aliased = 20
    Coherent = 23
    NonWritable = 24
    NonReadable = 25
    Binding = 33
    DescriptorSet = 34
    Offset = 35
    NoContraction = 42


class ImageFormat(IntEnum):
    """Formats of the pixels of an image that a kernel writes; all are of unsigned integers."""

    Unknown = 0
    Rgba32ui = 30
    Rgba16ui = 31
    Rgba8ui = 32
    R32ui = 33
    Rg32ui = 35
    Rg16ui = 36
    Rg8ui = 37
    R16ui = 38
    R8ui = 39


#: By the bytes of an element, and the elements of a pixel.
IMAGE_FORMATS = {
    (1, 1): ImageFormat.R8ui,
    (1, 2): ImageFormat.Rg8ui,
    (1, 4): ImageFormat.Rgba8ui,
    (2, 1): ImageFormat.R16ui,
    (2, 2): ImageFormat.Rg16ui,
    (2, 4): ImageFormat.Rgba16ui,
    (4, 1): ImageFormat.R32ui,
    (4, 2): ImageFormat.Rg32ui,
    (4, 4): ImageFormat.Rgba32ui,
}
IMAGE_2D = 1  # the dimensionality of an image


class BuiltIn(IntEnum):
    """Inputs that the device fills in."""

    WorkgroupSize = 25
    WorkgroupId = 26
    LocalInvocationId = 27


class SpirvMode(IntEnum):
    """Execution modes of an entry point."""

    SignedZeroInfNanPreserve = 4461
    LocalSize = 17
    LocalSizeId = 38


GL_COMPUTE = 5  # the execution model of compute shaders

# Instructions without a result, and those whose result has no type; all others have a type, then a result.
_NO_RESULT = frozenset(
    {
        Op.Source, Op.Name, Op.MemberName, Op.Extension, Op.MemoryModel, Op.EntryPoint, Op.ExecutionMode,
        Op.ExecutionModeId, Op.Capability, Op.FunctionEnd, Op.Store, Op.CopyMemory, Op.Decorate, Op.MemberDecorate,
        Op.ControlBarrier, Op.MemoryBarrier, Op.LoopMerge, Op.SelectionMerge, Op.Branch, Op.BranchConditional,
        Op.Switch, Op.Return, Op.ReturnValue, Op.Unreachable, Op.ImageWrite,
    }
)  # fmt: skip
_UNTYPED_RESULT = frozenset(
    {
        Op.ExtInstImport, Op.TypeVoid, Op.TypeBool, Op.TypeInt, Op.TypeFloat, Op.TypeVector, Op.TypeImage,
        Op.TypeArray, Op.TypeRuntimeArray, Op.TypeStruct, Op.TypePointer, Op.TypeFunction, Op.Label,
    }
)  # fmt: skip


def words_of(binary: bytes) -> tuple[int, ...]:
    """Returns the words of a module in this machine's byte order; raises ValueError for bytes that are no SPIR-V."""
    if len(binary) % 4 or len(binary) < 4 * HEADER_WORDS:
        raise ValueError(f"{len(binary)} bytes are no SPIR-V module: it has whole words of 4 bytes, 5 at least")
    for order in "<>":
        words = struct.unpack(f"{order}{len(binary) // 4}I", binary)
        if words[0] == MAGIC:
            return words
    raise ValueError(f"the first word is {binary[:4].hex()} and not SPIR-V's {MAGIC:#010x}")


def instructions(words: Sequence[int]) -> Iterator[tuple[int, Sequence[int]]]:
    """Yields opcode and operands of each instruction; raises ValueError for one that exceeds the module."""
    at = HEADER_WORDS
    while at < len(words):
        length, opcode = words[at] >> 16, words[at] & 0xFFFF
        if length == 0 or at + length > len(words):
            raise ValueError(f"the instruction at word {at} has {length} words of {len(words) - at} that follow")
        yield opcode, words[at + 1 : at + length]
        at += length


def text_in(words: Sequence[int]) -> tuple[str, int]:
    """Returns the text at the start of ``words``, and the number of words it takes; raises ValueError when it does not
    end.
    """
    for count, word in enumerate(words, 1):
        if not all(word >> shift & 0xFF for shift in (0, 8, 16, 24)):
            raw = struct.pack(f"<{count}I", *words[:count])
            return raw.split(b"\0", 1)[0].decode(errors="replace"), count
    raise ValueError("a text without an end")


def disassemble(words: Sequence[int]) -> str:
    """Returns one line for each instruction, in the style of spirv-dis, with operands as numbers, for debugging."""
    known = {op.value: op for op in Op}
    lines = []
    for opcode, operands in instructions(words):
        op = known.get(opcode)
        name = f"Op{op.name}" if op is not None else f"Op<{opcode}>"
        needed = 0 if op is None or op in _NO_RESULT else 1 if op in _UNTYPED_RESULT else 2
        if needed == 0 or len(operands) < needed:  # a broken module may be what is debugged
            lines.append(f"      {name} {' '.join(map(str, operands))}".rstrip())
        elif needed == 1:
            lines.append(f"%{operands[0]} = {name} {' '.join(map(str, operands[1:]))}".rstrip())
        else:
            lines.append(f"%{operands[1]} = {name} %{operands[0]} {' '.join(map(str, operands[2:]))}".rstrip())
    return "\n".join(lines)
