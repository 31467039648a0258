"""Shaders as SPIR-V text, made binary by the assembler of SPIRV-Tools: it shares no code with this package."""

from __future__ import annotations

import subprocess
from functools import cache

from tests.selection.installed import spirv_tool


@cache
def assembled(text: str) -> bytes:
    """The module that ``text`` spells, which spirv-val accepts."""
    made = assembled_unchecked(text)
    checked = subprocess.run(
        [spirv_tool("spirv-val"), "--target-env", "vulkan1.2", "-"], input=made, capture_output=True, check=False
    )
    assert checked.returncode == 0, checked.stderr.decode() + checked.stdout.decode()
    return made


def assembled_unchecked(text: str) -> bytes:
    """``assembled``, of what spirv-val would refuse."""
    made = subprocess.run(
        [spirv_tool("spirv-as"), "--target-env", "vulkan1.2", "-o", "-", "-"],
        input=text.encode(),
        capture_output=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr.decode()
    return made.stdout


#: y[i] = a * x[i] + y[i] for 64 invocations a workgroup; ``a`` is a push constant.
SAXPY = """
OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "saxpy" %id %x %y %constants
OpExecutionMode %main LocalSize 64 1 1
OpDecorate %id BuiltIn GlobalInvocationId
OpDecorate %floats ArrayStride 4
OpDecorate %buffer Block
OpMemberDecorate %buffer 0 Offset 0
OpDecorate %numbers Block
OpMemberDecorate %numbers 0 Offset 0
OpDecorate %x DescriptorSet 0
OpDecorate %x Binding 0
OpDecorate %x NonWritable
OpDecorate %y DescriptorSet 0
OpDecorate %y Binding 1
%void = OpTypeVoid
%function = OpTypeFunction %void
%uint = OpTypeInt 32 0
%float = OpTypeFloat 32
%uint3 = OpTypeVector %uint 3
%uint3_in = OpTypePointer Input %uint3
%uint_in = OpTypePointer Input %uint
%floats = OpTypeRuntimeArray %float
%buffer = OpTypeStruct %floats
%buffer_pointer = OpTypePointer StorageBuffer %buffer
%float_pointer = OpTypePointer StorageBuffer %float
%numbers = OpTypeStruct %float
%numbers_pointer = OpTypePointer PushConstant %numbers
%number_pointer = OpTypePointer PushConstant %float
%zero = OpConstant %uint 0
%id = OpVariable %uint3_in Input
%x = OpVariable %buffer_pointer StorageBuffer
%y = OpVariable %buffer_pointer StorageBuffer
%constants = OpVariable %numbers_pointer PushConstant
%main = OpFunction %void None %function
%entry = OpLabel
%id_x = OpAccessChain %uint_in %id %zero
%i = OpLoad %uint %id_x
%a_at = OpAccessChain %number_pointer %constants %zero
%a = OpLoad %float %a_at
%x_at = OpAccessChain %float_pointer %x %zero %i
%x_i = OpLoad %float %x_at
%y_at = OpAccessChain %float_pointer %y %zero %i
%y_i = OpLoad %float %y_at
%product = OpFMul %float %a %x_i
%sum = OpFAdd %float %product %y_i
OpStore %y_at %sum
OpReturn
OpFunctionEnd
"""


#: One invocation writes the first pixel of an image that it reads to one that it writes, both of four integers.
PIXEL = """
OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "pixel" %x %y
OpExecutionMode %main LocalSize 1 1 1
OpDecorate %x DescriptorSet 0
OpDecorate %x Binding 0
OpDecorate %y DescriptorSet 0
OpDecorate %y Binding 1
OpDecorate %y NonReadable
%void = OpTypeVoid
%function = OpTypeFunction %void
%uint = OpTypeInt 32 0
%uint4 = OpTypeVector %uint 4
%uint2 = OpTypeVector %uint 2
%zero = OpConstant %uint 0
%first = OpConstantComposite %uint2 %zero %zero
%read = OpTypeImage %uint 2D 0 0 0 1 Unknown
%written = OpTypeImage %uint 2D 0 0 0 2 Rgba32ui
%read_pointer = OpTypePointer UniformConstant %read
%written_pointer = OpTypePointer UniformConstant %written
%x = OpVariable %read_pointer UniformConstant
%y = OpVariable %written_pointer UniformConstant
%main = OpFunction %void None %function
%start = OpLabel
%from = OpLoad %read %x
%to = OpLoad %written %y
%texel = OpImageFetch %uint4 %from %first Lod %zero
OpImageWrite %to %first %texel
OpReturn
OpFunctionEnd
"""
