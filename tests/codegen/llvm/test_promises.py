"""What the printed IR promises to LLVM: flags of arithmetic, and alignments. LLVM may use each, and none shows in a
result on every processor, so the text is read."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from xdsl.dialects import arith
from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import f32
from xdsl.dialects.test import TestOp as AnyOp
from xdsl.dialects.utils import FastMathFlag

import landbridge as lb
from landbridge.codegen.llvm import image
from landbridge.codegen.llvm.compile import optimized
from landbridge.codegen.llvm.float_arith import fast_flags
from landbridge.codegen.llvm.image import machine_of
from landbridge.targets.target import Target
from tests.whole_models.small_models import edges, projection

FLAGS = re.compile(r"\b(fast|nnan|ninf|nsz|arcp|contract|afn|reassoc)\b")
ACCESS = re.compile(r"(?:load|store) (?:volatile )?(?:<\d+ x )?(\w+)>?(?: [^,]+)?, ptr [^,]+, align (\d+)")
POINTER_ALIGN = re.compile(r"@llvm\.masked\.\w+\.v\d+(\w+)\.p0\(.*?align (\d+)")
STEP = re.compile(r"(%\w+) = getelementptr (inbounds )?\w+, ptr (%\w+), i64 (?:(%\w+)|-?\d+)$", re.MULTILINE)
HIDDEN = 'asm ""'
BYTES = {"i1": 1, "i8": 1, "i16": 2, "half": 2, "bfloat": 2, "i32": 4, "float": 4, "i64": 8, "double": 8, "ptr": 8}


def chain(operators: list[str], dtype: int = TensorProto.FLOAT) -> ModelProto:
    """Elementwise operators, on a length that leaves a tail."""
    nodes = [helper.make_node(op, [f"v{i}"], [f"v{i + 1}"]) for i, op in enumerate(operators)]
    values = [helper.make_tensor_value_info(n, dtype, [67]) for n in ("v0", f"v{len(operators)}")]
    graph = helper.make_graph(nodes, "chain", values[:1], values[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def rows() -> ModelProto:
    """A Softmax, and an addition of a constant: two reductions."""
    nodes = [helper.make_node("Softmax", ["x"], ["s"]), helper.make_node("Add", ["s", "b"], ["y"])]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [5, 37]) for name in "xy")
    bias = numpy_helper.from_array(np.ones(37, np.float32), "b")
    graph = helper.make_graph(nodes, "rows", [x], [y], [bias])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


MODELS = {
    "elementwise": lambda: chain(["Relu", "Exp", "Sqrt", "Neg"]),
    "halves": lambda: chain(["Relu", "Neg"], TensorProto.FLOAT16),
    "bytes": lambda: chain(["Identity", "Neg"], TensorProto.INT8),
    "rows": rows,
    "convolutions": lambda: edges(12, 18, 16),
    "product": lambda: projection(3, 33, 35),
}


def texts(model: ModelProto, target: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The LLVM modules of the kernels of ``model``, between them a character that is in none."""
    found: list[str] = []
    print_functions = image.print_functions

    def keep(functions, isa):
        found.append(print_functions(functions, isa))
        return found[-1]

    monkeypatch.setattr(image, "print_functions", keep)
    lb.compile(model, target)
    return "\x00".join(found)


def accesses(text: str) -> Iterator[tuple[str, str, int]]:
    for line in text.splitlines():
        for pattern in (ACCESS, POINTER_ALIGN):
            for kind, align in pattern.findall(line):
                yield line, kind, int(align)


def width(kind: str) -> int:
    """Bytes of an element, as types or intrinsics' suffixes name it."""
    return BYTES[kind] if kind in BYTES else int(kind.strip("bfi")) // 8


@pytest.mark.parametrize("flag", list(FastMathFlag))
def test_no_flag_that_lets_llvm_assume_away_nan_or_infinity(flag):
    op = AnyOp(result_types=[f32], attributes={"fastmath": FastMathFlagsAttr([flag])})
    harmless = {"reassoc", "nsz", "arcp", "contract"}
    assert set(fast_flags(op).split()) == ({flag.value} & harmless)
    zero = arith.ConstantOp.from_int_and_width(0, 32)
    assert fast_flags(zero) == ""


@pytest.mark.parametrize("name", MODELS)
def test_flags_and_alignments_of_kernels(name, monkeypatch):
    text = texts(MODELS[name](), "llvm -mcpu=x86-64-v3", monkeypatch)
    # Only the sums of rows may be reordered.
    assert set(FLAGS.findall(text)) <= {"contract", "nsz"} | ({"reassoc"} if name == "rows" else set())
    found = list(accesses(text))
    assert found
    for line, kind, align in found:
        assert align <= width(kind), f"{line}: a tensor may begin at any element"


def test_only_the_address_of_an_element_is_promised_to_lie_in_its_buffer(monkeypatch):
    """A step by loop counters goes beyond the buffer where a constant step then leads back into it."""
    text = texts(edges(12, 18, 16), "llvm -mcpu=x86-64-v3", monkeypatch)
    functions = [{step[0]: step for step in STEP.findall(body)} for body in text.split("\ndefine ")]
    followed = 0
    for made in functions:
        for _, promised, base, _ in made.values():
            if base in made:
                followed += 1
                assert not promised and not made[base][1], f"{base}, from which a constant is added, is promised"
    assert followed
    assert any(promised for made in functions for _, promised, _, _ in made.values())


def test_what_is_hidden_of_addresses_is_computed_before_the_loop_of_a_sum(monkeypatch):
    """A name that LLVM cannot look behind keeps it from weighing bases; within the loop it would cost a copy an
    iteration."""
    target = "llvm -mcpu=x86-64-v4"
    text = texts(edges(12, 40, 40), target, monkeypatch)
    assert HIDDEN in text
    loops = []
    for module in text.split("\x00"):
        found = str(optimized(module, machine_of(Target(target)), vectorize=False))
        for function in found.split("\ndefine "):
            loops += [block for block in innermost_loops(function) if "fmuladd" in block]
    assert loops
    assert not any(HIDDEN in block for block in loops)


def innermost_loops(function: str) -> Iterator[str]:
    """The basic blocks, as LLVM prints them, that go back to where a loop without others in it is tested."""
    blocks = function.split("\n\n")
    labels = [block.lstrip("\n").partition(":")[0] for block in blocks]
    for i in range(1, len(blocks)):
        if any(f"label %{label}\n" in f"{blocks[i]}\n" for label in labels[i - 1 : i + 1]):
            yield blocks[i]
