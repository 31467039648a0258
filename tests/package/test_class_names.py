"""A public class name means one thing in the package."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import landbridge

ROOT = Path(landbridge.__file__).parent


def test_public_class_names_are_told_apart() -> None:
    modules: dict[str, list[str]] = defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules[node.name].append(str(path.relative_to(ROOT)))
    twice = {name: places for name, places in modules.items() if len(places) > 1}
    assert not twice, f"name one of each by what it is: {twice}"
