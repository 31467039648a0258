"""Identifiers of src/ and names of its files say what the field says: none has a word that was retired."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from landbridge.process.garbage import collector_paused

SRC = Path(__file__).parents[2] / "src" / "landbridge"

#: Each retired word, with the field's words for its meanings (docs/glossary.md).
RETIRED = {
    "turn": "lock, iteration, transpose or resize",
    "turns": "iterations",
    "turned": "transposed",
    "home": "device binding or placement",
    "homes": "device bindings or placements",
    "near": "L1",
    "far": "beyond L2",
    "afar": "beyond L2",
    "nearest": "L1",
    "apart": "strided, or separate",
    "beside": "background, concurrent, or extra",
    "trip": "iteration",
    "told": "assumed, reported or declared",
    "asked": "requested or required",
    "stated": "declared",
    "ways": "specializations or variants",
    "lent": "borrowed",
    "kept": "retained",
    "often": "expected",
    "meanwhile": "concurrently, or what the value stands for",
    "met": "the condition that holds",
    "room": "capacity",
    "said": "text, or what it holds",
    "made": "created",
    "alike": "unified",
}

#: Identifiers that may have one, and why.
ALLOWED = {
    "nearest": "the mode of ONNX's Resize and GridSample",
    "_nearest": "implements that mode",
    "nearest_mode": "an attribute of ONNX's Resize",
}


def words(identifier: str) -> set[str]:
    """The words of an identifier or a file's name, in small letters: parts between underscores and of camel case."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", identifier)}


def identifiers(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """The names that a module defines or uses, with their lines; 0 where a node has none."""
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name, line
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, line
            case ast.keyword(arg=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name, line
            case ast.MatchClass(kwd_attrs=names) | ast.Global(names=names) | ast.Nonlocal(names=names):
                yield from ((name, line) for name in names)
            case ast.ImportFrom(module=str(module)):
                yield from ((part, line) for part in module.split("."))
            case ast.alias(name=name, asname=other):
                yield from ((part, line) for part in (*name.split("."), *([other] if other else [])))


@cache
def identifiers_of_the_package() -> dict[Path, list[tuple[str, int]]]:
    """The identifiers of each module of the package, with their lines, in the order of the names."""
    with collector_paused():  # nothing that is parsed becomes garbage
        return {path: sorted(set(identifiers(ast.parse(path.read_text())))) for path in sorted(SRC.rglob("*.py"))}


def retired(identifier: str) -> set[str]:
    """The retired words of ``identifier``; none where it is allowed."""
    return set() if identifier in ALLOWED else words(identifier) & RETIRED.keys()


def test_no_identifier_has_a_retired_word() -> None:
    found = [
        f"{path.relative_to(SRC)}:{line}: {name!r}: say {' or '.join(RETIRED[word] for word in sorted(wrong))}"
        for path, names in identifiers_of_the_package().items()
        for name, line in names
        if (wrong := retired(name))
    ]
    assert not found, "\n".join(found)


def test_no_file_has_a_retired_word() -> None:
    found = [str(p.relative_to(SRC)) for p in SRC.rglob("*") if "__pycache__" not in p.parts and retired(p.stem)]
    assert not found


def test_what_is_allowed_is_there() -> None:
    there = {name for names in identifiers_of_the_package().values() for name, _ in names}
    assert ALLOWED.keys() <= there


@pytest.mark.parametrize(
    "code",
    [
        "turn = 1",
        "x.takes_turn",
        "def f(*, homes): pass",
        "f(near_bytes=1)",
        "class EdgeTurns: pass",
        "from a.beside import b",
        "import a as far",
        "match x:\n    case P(apart=1): pass",
        "def f():\n    global _TURN",
    ],
)
def test_a_retired_word_is_found(code: str) -> None:
    assert any(map(retired, (name for name, _ in identifiers(ast.parse(code)))))
