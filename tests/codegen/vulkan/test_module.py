"""The SPIR-V module: what it declares, its text, and what a target that has little gets."""

from __future__ import annotations

import subprocess

import numpy as np
import onnx
import pytest
from xdsl.dialects import arith, math

import landbridge as lb
from landbridge.codegen.vulkan.image import generate_image
from landbridge.codegen.vulkan.module_builder import SpirvModule, constant_words, text_words
from landbridge.device.api import Region
from landbridge.errors import CodegenError, FallbackWarning
from landbridge.executable.device_image import DeviceImage
from landbridge.executable.spirv import Capability, Decoration, Op, disassemble, instructions, text_in, words_of
from landbridge.targets import Target
from tests.codegen.vulkan.elementwise import module_of, target, type_of
from tests.codegen.vulkan.launcher import Program, check_legal, host_region
from tests.selection.installed import spirv_tool
from tests.whole_models.small_models import add


def capabilities(code: bytes) -> set[str]:
    return {Capability(x[0]).name for op, x in instructions(words_of(code)) if op == Op.Capability}


def image(dtype: object, to: Target) -> DeviceImage:
    kind = type_of(dtype)
    module = module_of([kind, kind], kind, 100, lambda code, x: code.emit(arith.AddiOp, x, kind))
    return generate_image(module, to)


def test_only_what_is_used_is_requested_of_the_device() -> None:
    plain = Target("vulkan")
    assert capabilities(image(np.int32, plain).code) == {"Shader"}
    assert capabilities(image(np.int8, plain).code) == {"Shader", "Int8", "StorageBuffer8BitAccess"}
    assert capabilities(image(np.int16, plain).code) == {"Shader", "Int16", "StorageBuffer16BitAccess"}
    assert capabilities(image(np.int64, plain).code) == {"Shader", "Int64"}


def test_nan_is_retained_where_the_target_can() -> None:
    kind = type_of(np.float32)
    module = module_of([kind], kind, 4, lambda code, x: code.emit(math.SqrtOp, x, kind))
    keeping = generate_image(module, Target("vulkan -preserve-nan=1")).code
    assert capabilities(keeping) == {"Shader", "SignedZeroInfNanPreserve"}
    assert capabilities(generate_image(module, Target("vulkan")).code) == {"Shader"}
    check_legal(keeping)


def test_equal_things_are_declared_once() -> None:
    module = SpirvModule()
    assert module.type_of("f32") == module.type_of("f32") != module.type_of("i32")
    assert module.constant(1.0, "f32") == module.constant(1.0, "f32") != module.constant(-1.0, "f32")
    assert module.constant(0.0, "f32") != module.constant(-0.0, "f32")
    assert module.constant(-1, "i32") == module.constant(0xFFFFFFFF, "i32")
    assert module.starts(3) == module.starts(3)


@pytest.mark.parametrize(
    ("value", "element", "words"),
    [
        (1.0, "f32", (0x3F800000,)),
        (-1, "i8", (0xFF,)),
        (-2, "i64", (0xFFFFFFFE, 0xFFFFFFFF)),
        (1.0, "f64", (0, 0x3FF00000)),
        (1e300, "f32", (0x7F800000,)),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_constants(value: float, element: str, words: tuple[int, ...]) -> None:
    assert constant_words(value, element) == words


def test_texts() -> None:
    for text in ("", "abc", "abcd", "main_kernel", "é"):
        assert text_in([*text_words(text), 7]) == (text, len(text_words(text)))
    with pytest.raises(ValueError, match="without an end"):
        text_in([0x61616161])


def test_the_text_of_a_module_is_what_spirv_tools_say() -> None:
    code = image(np.int64, target()).code
    theirs = subprocess.run(
        [spirv_tool("spirv-dis"), "--raw-id", "--no-header", "-"], input=code, capture_output=True, check=True
    ).stdout.decode()
    ours = disassemble(words_of(code))

    def names(text: str) -> list[str]:
        return [next(word for word in line.split() if word.startswith("Op")) for line in text.splitlines() if line]

    assert names(ours) == names(theirs)
    results = [line.split()[0] for line in theirs.splitlines() if line.strip().startswith("%")]
    assert [line.split()[0] for line in ours.splitlines() if line.startswith("%")] == results


def test_what_has_no_form_is_reported() -> None:
    kind = type_of(np.float64)
    module = module_of([kind], kind, 4, lambda code, x: code.emit(math.SinOp, x, kind))
    with pytest.raises(CodegenError, match=r"function 'f': math\.sin of f64 has no SPIR-V form"):
        generate_image(module, target())
    few = Target("vulkan -max-storage-buffers=4")
    kinds = [type_of(np.int32)] * 5
    module = module_of(kinds, kinds[0], 4, lambda code, x: x[0])
    with pytest.raises(CodegenError, match="uses 6 buffers; target"):
        generate_image(module, few)


def test_large_buffers_are_counted_in_64_bits() -> None:
    kind = type_of(np.int8)
    module = module_of([kind], kind, 1 << 31, lambda code, x: x[0])
    code = generate_image(module, Target("vulkan -int64=1 -max-binding-bytes=4294967296")).code
    assert "Int64" in capabilities(code)
    check_legal(code)


def test_numbers_of_a_kernel_that_begins_anywhere() -> None:
    """Push constants make up for what bindings are aligned to."""
    kind = type_of(np.int8)
    module = module_of([kind], kind, 100, lambda code, x: code.emit(arith.AddiOp, [x[0], x[0]], kind))
    program = Program(generate_image(module, target()))
    api = program.api
    space = api.alloc_data_space(0, 4096, 1, "global", None)
    source, result = np.arange(4096, dtype=np.uint8).view(np.int8), np.zeros(4096, np.int8)
    launch = program.image.functions["f"].launches[0]
    for start, to in ((0, 512), (1, 513), (37, 1003), (250, 777)):
        api.copy_data_from_to(host_region(source), Region(space), 4096, None, None)
        api.launch(
            program.module, launch.kernel, launch.grid, launch.block, [Region(space, start), Region(space, to)], None
        )  # type: ignore[arg-type]
        api.copy_data_from_to(Region(space), host_region(result), 4096, None, None)
        wanted = source.copy()
        wanted[to : to + 100] = 2 * source[start : start + 100]
        assert (result == wanted).all()
    api.free_data_space(space)


def test_what_a_target_cannot_run_goes_to_the_cpu() -> None:
    """More bytes than a binding takes, and elements that the device does not have."""
    with pytest.warns(FallbackWarning, match=r"takes 256 bytes in one buffer; .* at most 128"):
        executable = lb.compile(add(64), Target("vulkan -max-binding-bytes=128"))
    assert {vdevice.name for vdevice in executable.vdevices} >= {"cpu"}


@pytest.mark.parametrize("operation", [arith.RemSIOp, arith.FloorDivSIOp, arith.CeilDivSIOp])
def test_remainders_of_negative_numbers_are_defined(operation: type) -> None:
    kind = type_of(np.int32)
    module = module_of([kind, kind], kind, 4, lambda code, x: code.emit(operation, x, kind))
    used = {op for op, _ in instructions(words_of(generate_image(module, Target("vulkan")).code))}
    assert Op.SDiv in used
    assert not used & {Op.SRem, Op.SMod}  # undefined in Vulkan where an operand is negative


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_what_work_items_exchange_over_a_barrier_is_coherent(direction: str) -> None:
    made = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 22]>
        g (float[3,1,2] x, float[1,4,2] w, float[1,4,4] r) => (float[1,1,4] h) {{
            "", h = RNN <direction: string = "{direction}", hidden_size: int = 4> (x, w, r)
        }}""")
    image = lb.compile(made, Target("vulkan")).modules[0].image
    assert isinstance(image, DeviceImage)
    check_legal(image.code)
    # The state, and the product that each step adds: one work-item reads there what others wrote.
    assert coherent(image.code)
    # Steps counted downwards are taken away last: no sum on the way is negative.
    assert (Op.ISub in addressing(image.code)) == (direction == "reverse")
    plain = lb.compile(add(), Target("vulkan")).modules[0].image
    assert isinstance(plain, DeviceImage) and not coherent(plain.code)


def coherent(code: bytes) -> int:
    """How many buffers are."""
    found = [words for op, words in instructions(words_of(code)) if op == Op.Decorate]
    return sum(words[1] == Decoration.Coherent for words in found)


def addressing(code: bytes) -> set[int]:
    """The instructions that gave the last index of each place in memory."""
    made = {words[1]: op for op, words in instructions(words_of(code)) if len(words) > 1}
    return {made[w[-1]] for op, w in instructions(words_of(code)) if op == Op.InBoundsAccessChain}
