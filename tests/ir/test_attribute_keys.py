"""The keys of attributes are defined in one place."""

from __future__ import annotations

import ast
from pathlib import Path

import landbridge
from landbridge.ir import kernel_attributes, main_attributes, op_attributes

SOURCE = Path(landbridge.__file__).parent
KEY_MODULES = (main_attributes, kernel_attributes, op_attributes)


def keys() -> set[str]:
    """The keys that files of attributes state; private names are words inside of their values."""
    names = {k: v for module in KEY_MODULES for k, v in vars(module).items() if k.isupper() and not k.startswith("_")}
    return {v for v in names.values() if isinstance(v, str)}


def test_no_other_file_states_a_key() -> None:
    found, declared, files = [], keys() - {"node", "why"}, {Path(str(module.__file__)) for module in KEY_MODULES}
    for path in SOURCE.rglob("*.py"):
        if path in files:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assigned = [n for n in ast.walk(tree) if isinstance(n, ast.Assign)]
        named = {id(n.value) for n in assigned if ast.unparse(n.targets[0]) == "name"}  # of an operation or attribute
        found += [
            f"{path.relative_to(SOURCE)}:{node.lineno} {node.value}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and node.value in declared and id(node) not in named
        ]
    assert not found
