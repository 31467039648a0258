"""Finding and running the C compiler: what goes wrong is said, with the way out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from landbridge.codegen.c import generate
from landbridge.codegen.c.compile import compile_all, compiler_for
from landbridge.errors import CodegenError, TargetError
from landbridge.executable import abi
from landbridge.executable.packed import PACKED_SYMBOL
from landbridge.targets import Target, c_compiler

from ..native import parse

EMPTY = "func.func @f(%b: index, %e: index) { func.return }"


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.mark.usefixtures("no_compiler")
def test_no_compiler_says_what_to_do() -> None:
    target = Target("c")
    assert (target.mcpu, target.mattr, target.vector_bits) == ("generic", (), 128)
    with pytest.raises(CodegenError, match=r"looked for 'cc', 'gcc', 'clang'.*apt-get install gcc.*target 'llvm'"):
        generate(parse(EMPTY), target)


def test_a_named_compiler_that_is_absent() -> None:
    with pytest.raises(CodegenError, match="looked for 'no-such-cc'"):
        generate(parse(EMPTY), Target("c -compiler=no-such-cc"))


def test_a_compiler_that_does_not_compile(tmp_path: Path) -> None:
    script = tmp_path / "brokencc"
    script.write_text("#!/bin/sh\necho it is broken >&2\nexit 3\n")
    script.chmod(0o755)
    with pytest.raises(TargetError, match="it is broken"):
        Target({"kind": "c", "compiler": str(script)})


def test_options_that_the_compiler_refuses() -> None:
    with pytest.raises(CodegenError, match="rejects the generated C, or an option"):
        generate(parse(EMPTY), Target("c -cflags=-fno-such-option"))


def test_unknown_cpus_are_refused_when_the_target_is_built() -> None:
    with pytest.raises(TargetError, match=r"refuses -march=zen99.*native.*or generic"):
        Target("c -mcpu=zen99")
    with pytest.raises(TargetError, match="starts with"):
        Target("c -mattr=avx2")


def test_the_compilers_message_is_shown() -> None:
    with pytest.raises(CodegenError, match="unknown_function_or_type"):
        compile_all(["unknown_function_or_type x;"], compiler_for(Target("c")))


def test_a_host_target_is_recorded_as_features() -> None:
    target = Target("c")
    assert target.mcpu == "generic"
    assert Target.from_json(target.to_json()) == target == Target(str(target))
    assert target.device_types == ("cpu",) and target.memory == Target("llvm").memory
    assert target.num_cores == len(os.sched_getaffinity(0))


def test_what_a_cpu_has_decides_vectors_and_needs() -> None:
    compiler = compiler_for(Target("c -mcpu=x86-64-v3"))
    assert compiler.isa == "x86_64" and {"avx2", "fma", "f16c"} <= set(compiler.required_flags)
    assert compiler_for(Target("c -mcpu=x86-64")).required_flags == ()
    assert [Target(f"c -mcpu=x86-64{level}").vector_bits for level in ("", "-v3", "-v4")] == [128, 256, 512]
    without = Target("c -mcpu=x86-64-v3 -mattr=-fma")
    assert "fma" not in compiler_for(without).required_flags


def test_an_image_has_the_kernels_and_the_runtime() -> None:
    image = generate(parse(EMPTY), Target("c")).image
    runtime = {abi.RUN_SYMBOL, abi.POOL_CREATE_SYMBOL, abi.POOL_DESTROY_SYMBOL, PACKED_SYMBOL}
    assert set(image.symbols) == {"f", *runtime} and image.isa == "x86_64"


def test_macros_of_a_missing_file() -> None:
    with pytest.raises(ValueError, match="does not run"):
        c_compiler.macros("/nowhere/cc", ())
