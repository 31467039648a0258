"""What makes code behave as it does not read: each use of it is listed here, with its reason and the test of it.

Plain code comes first. Where it costs too much, the cost stands at the place, and a test fails when it breaks.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src" / "landbridge"

#: How often each file may do each of these, and why.
ALLOWED: dict[tuple[str, str], tuple[int, str]] = {
    ("records.py", "exec"): (1, "__init__ of records, as dataclasses itself makes it: tests/test_records.py"),
    ("ops/legal.py", "eval"): (1, "expressions of our own rules, from a syntax tree: tests/ops/test_rules.py"),
    ("device/__init__.py", "class"): (1, "landbridge.device is a package and is called: tests/device/test_registry.py"),
    ("reporting/warning_notes.py", "stack"): (2, "stacklevel= of warnings: tests/reporting/test_warning_notes.py"),
    ("sanitizer/findings.py", "stack"): (3, "the line of a finding, when it is made: tests/sanitizer/test_findings.py"),
    ("frontend/late_import.py", "modules"): (1, "0.3 s of each compile: tests/frontend/test_late_import.py"),
    ("onnxruntime/installed.py", "modules"): (1, "import onnxruntime finds ours: tests/onnxruntime/test_installed.py"),
    ("identity_map.py", "id"): (8, "the table by identity that keeps its keys alive: tests/test_identity_map.py"),
    ("memory/imports.py", "id"): (1, "removed while the key dies: tests/memory/test_imports.py"),
    ("memory/host_array.py", "id"): (
        3,
        "the address, in a quarter of the time: tests/memory/test_host_array.py",
    ),
    ("torch_backend.py", "id"): (1, "tensors compare by elements; kept alive: tests/test_torch_backend.py"),
    ("vm/frame.py", "id"): (1, "an order of locks, which are alive: tests/session/test_threads.py"),
}
_STACK = {"_getframe", "_current_frames", "currentframe", "f_back", "f_locals", "f_globals", "getouterframes"}


def magic(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """The kind and line of each place of a module that does something of this."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id="exec" | "eval" | "id" as name, ctx=ast.Load()):
                yield name, node.lineno
            case ast.Attribute(attr=name) if name in _STACK:
                yield "stack", node.lineno
            case ast.Attribute(attr="__class__" | "__bases__", ctx=ast.Store()):
                yield "class", node.lineno
            case ast.Call(ast.Name("setattr"), [_, ast.Constant("__class__" | "__bases__"), _]):
                yield "class", node.lineno
            case ast.Subscript(ast.Attribute(ast.Name("sys"), "modules"), ctx=ast.Store()):
                yield "modules", node.lineno


def test_each_use_is_listed():
    found = Counter(
        (path.relative_to(SRC).as_posix(), kind)
        for path in SRC.rglob("*.py")
        for kind, _ in magic(ast.parse(path.read_text(encoding="utf-8")))
    )
    assert found == {place: count for place, (count, _) in ALLOWED.items()}, (
        "use plain code; an object that is hashed by identity as a key, or landbridge.identity_map for others"
    )


def test_each_reason_names_a_test():
    root = SRC.parents[1]
    for place, (_, reason) in ALLOWED.items():
        assert (root / reason.rpartition(": ")[2]).is_file(), place


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("exec('x = 1')", "exec"),
        ("eval(text)", "eval"),
        ("known[id(x)] = 1", "id"),
        ("set(map(id, values))", "id"),
        ("sys._getframe(1)", "stack"),
        ("inspect.currentframe()", "stack"),
        ("names = frame.f_locals", "stack"),
        ("sys.modules[__name__].__class__ = C", "class"),
        ("setattr(module, '__class__', C)", "class"),
        ("sys.modules['x'] = module", "modules"),
    ],
)
def test_each_kind_is_found(code, kind):
    assert kind in {found for found, _ in magic(ast.parse(code))}


@pytest.mark.parametrize("code", ["module.eval()", "x.id", "a.__class__ is b.__class__", "sys.modules['x'].y"])
def test_what_only_looks_like_it_is_not(code):
    assert not list(magic(ast.parse(code)))
