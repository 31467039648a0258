from __future__ import annotations

import uuid
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp

from landbridge.codegen.registry import codegen_for, codegen_kinds, register_codegen
from landbridge.errors import CodegenError
from landbridge.executable.parts import CodeImage, ModuleImage


def nothing(module: ModuleOp, target: Any) -> ModuleImage:
    return ModuleImage("{}", CodeImage("none", b"", {}))


def test_llvm_is_there_through_its_entry_point() -> None:
    from landbridge.codegen.llvm import generate

    assert codegen_for("llvm") is generate
    assert "llvm" in codegen_kinds()


def test_an_unknown_kind_names_the_known_ones() -> None:
    with pytest.raises(CodegenError, match=r"'abacus'; known: .*llvm.*landbridge.codegens"):
        codegen_for("abacus")


def test_a_kind_is_registered_once() -> None:
    kind = f"test-{uuid.uuid4().hex}"
    register_codegen(kind, nothing)
    register_codegen(kind, nothing)
    assert codegen_for(kind) is nothing
    assert kind in codegen_kinds()
    with pytest.raises(CodegenError, match="is taken by <function nothing"):
        register_codegen(kind, lambda module, target: nothing(module, target))
