"""What `.importlinter` cannot say: no circle of imports, lazy and type-only ones too; no use of others' privates."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path
from textwrap import dedent

import pytest

import landbridge
from landbridge.process.garbage import collector_paused

Trees = Mapping[str, ast.Module]
_OWN = ("self", "cls", "args[0]")  # the last is self to a decorator of methods


@cache
def package() -> Trees:
    """Every module of the package, parsed, by its dotted name."""
    root = Path(landbridge.__file__).parent
    with collector_paused():  # nothing that is parsed becomes garbage
        return {_name(file.relative_to(root.parent)): ast.parse(file.read_text()) for file in root.rglob("*.py")}


def _name(file: Path) -> str:
    return ".".join(file.with_suffix("").parts).removesuffix(".__init__")


def imports(trees: Trees, module: str) -> dict[str, int]:
    """The modules among ``trees`` that ``module`` imports anywhere, with a line of each."""
    found: dict[str, int] = {}
    for node in ast.walk(trees[module]):
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            named = [name if name in trees else str(node.module) for name in names]
        elif isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        else:
            continue
        found |= {name: node.lineno for name in named if name in trees and name != module}
    return found


def circle(trees: Trees) -> list[str]:
    """The arrows of one circle, ``module:line -> module``; none where there is none."""
    graph = {module: imports(trees, module) for module in trees}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        around = error.args[1][::-1]
        return [f"{a}:{graph[a][b]} -> {b}" for a, b in pairwise(around)]
    return []


def foreign_privates(trees: Trees) -> list[str]:
    """Each use of a name with an underscore that another module defines, and the one where it stands does not."""
    defined = {module: _defined(tree) for module, tree in trees.items()}
    everywhere = set().union(*defined.values())
    return [
        f"{module}:{line} {name}"
        for module, tree in trees.items()
        for line, name in _used(tree)
        if name in everywhere and name not in defined[module]
    ]


def _used(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Private names that are imported, and private attributes of others than ``self``, each with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, alias.name) for alias in node.names if _is_private(alias.name))
        elif isinstance(node, ast.Attribute) and _is_private(node.attr) and ast.unparse(node.value) not in _OWN:
            yield node.lineno, node.attr


def _is_private(name: str) -> bool:
    """Names of ctypes and of named tuples are not."""
    return name.startswith("_") and not name.endswith("_") and name not in ("_fields", "_replace")


def _defined(tree: ast.Module) -> set[str]:
    """Names of functions, classes, variables, attributes and slots that a module makes."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.attr if isinstance(node, ast.Attribute) else node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):  # of __slots__
            names.add(node.value)
    return names


def test_no_circle_of_imports() -> None:
    found = circle(package())
    assert not found, "\n".join(found)


def test_nobody_uses_the_privates_of_another_module() -> None:
    found = foreign_privates(package())
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "again",
    [
        "from p.a import A",
        "from p import a",
        "import p.a",
        "def f(): from p.a import A",
        "if TYPE_CHECKING:\n    from p.a import A",
    ],
)
def test_circles_are_found_however_they_are_written(again: str) -> None:
    sources = {"p": "", "p.a": "from p.b import B", "p.b": "import p.c as c", "p.c": again}
    trees = {name: ast.parse(source) for name, source in sources.items()}
    assert sorted(arrow.replace(":2 ->", ":1 ->") for arrow in circle(trees)) == [
        "p.a:1 -> p.b",
        "p.b:1 -> p.c",
        "p.c:1 -> p.a",
    ]
    assert circle({**trees, "p.c": ast.parse("import p")}) == []


def test_privates_are_found_however_they_are_reached() -> None:
    a = "class A:\n    _x = 1\n    def g(self): return self._y, other._x\n\ndef _f(): ..."
    b = "from p.a import _f\nimport p.a\nclass B(A):\n    def h(self, a): return a._x, self._x, p.a._f, a._unknown"
    trees = {"p": ast.parse(""), "p.a": ast.parse(a), "p.b": ast.parse(dedent(b))}
    assert foreign_privates(trees) == ["p.b:1 _f", "p.b:4 _x", "p.b:4 _f"]


def _rooms() -> set[str]:
    """The modules and packages directly in the package, as ``plugins.py`` and ``ops/``."""
    root = Path(landbridge.__file__).parent
    found = {path.name for path in root.glob("*.py") if not path.name.startswith("_")}
    return found | {f"{path.parent.name}/" for path in root.glob("*/__init__.py")}


def test_the_page_draws_every_room() -> None:
    """The picture of layers has each module and package of the root, and none that is gone."""
    page = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text(encoding="utf-8")
    picture = page.partition("```\n")[2].partition("```")[0]
    drawn = set(re.findall(r"(?<![\w/.])([a-z]\w+(?:\.py\b|/))", picture))
    assert drawn == _rooms()


def test_every_room_is_of_a_side() -> None:
    """A contract of ``.importlinter`` holds for each, but for what may import both sides."""
    config = ConfigParser()
    config.read(Path(__file__).parents[2] / ".importlinter")
    of_sides = {
        name.strip()
        for contract in ("compile-side", "run-side", "shared-layer")
        for name in config[f"importlinter:contract:{contract}"]["source_modules"].split()
    }
    rooms = {f"landbridge.{room.removesuffix('.py').removesuffix('/')}" for room in _rooms()}
    both = {f"landbridge.{name}" for name in ("cli", "onnxruntime", "ray", "torch_backend")}
    assert of_sides == rooms - both
