"""Modules that are loaded when they are used: nobody who uses them sees the difference."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FILES = {
    "late_one.py": "import sys\nsys.stdout.write('one ')\nvalue = 3\n",
    "late_pack/__init__.py": "import sys\nsys.stdout.write('pack ')\nfrom late_pack.part import half\nwhole = 42\n",
    "late_pack/part.py": "import late_pack\nhalf = 21\n",
    "late_pack/other.py": "from late_pack import whole\n",
    "late_holder/__init__.py": "import sys\nsys.stdout.write('holder ')\nfrom late_holder import inner\n",
    "late_holder/inner.py": "import sys\nsys.stdout.write('inner ')\nvalue = 5\n",
    "late_dynamic.py": "def __getattr__(name):\n    return name.upper()\n",
    "late_broken.py": "raise ValueError('broken')\n",
}
START = "from landbridge.frontend.late_import import import_late\n"


def printed(code: str, folder: Path) -> str:
    for name, text in FILES.items():
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    command = [sys.executable, "-c", f"import sys\nsys.path.insert(0, {str(folder)!r})\n{START}{code}"]
    return subprocess.run(command, capture_output=True, check=True, text=True, timeout=60).stdout


@pytest.mark.sample(7)
@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("import_late('late_one')\nimport late_one\nprint('-', late_one.value)", "one - 3"),
        ("import_late('late_one')\nprint('late_one' in sys.modules)", "True"),
        ("import_late('late_one')\nfrom late_one import value\nprint(value, type(sys.modules['late_one']))", "one 3"),
        ("import_late('late_pack')\nimport late_pack\nprint('-', late_pack.whole)", "pack - 42"),
        (
            "import_late('late_pack')\nimport late_pack.other as o\nprint(o.whole, o.__name__)",
            "pack 42 late_pack.other",
        ),
        ("import_late('late_holder.inner')\nimport late_holder as h\nprint('-', h.inner.value)", "holder inner - 5"),
        ("import late_one\nimport_late('late_one')\nprint(type(late_one).__name__)", "one module"),
        ("import_late('not_there', 'nor.there')\nprint(set(sys.modules) & {'not_there', 'nor'})", "set()"),
        ("import_late('late_one')\nimport late_one\nprint(hasattr(late_one, 'other'))", "one False"),
        ("import_late('late_dynamic')\nimport late_dynamic as d\nprint(d.other, d.another)", "OTHER ANOTHER"),
        (
            "import_late('late_one')\nimport late_one\nlate_one.value\nprint(hasattr(late_one, '__getattr__'))",
            "one False",
        ),
    ],
)
def test_a_module_is_loaded_when_something_of_it_is_used(code: str, wanted: str, tmp_path: Path) -> None:
    assert printed(code, tmp_path).startswith(wanted)


def test_what_fails_to_load_fails_each_time(tmp_path: Path) -> None:
    use = "try: late_broken.x\nexcept ValueError as e: print(e)\n"
    code = f"import_late('late_broken')\nimport late_broken\n{use}{use}"
    assert printed(code, tmp_path) == "broken\nbroken\n"


COMPILE = """
import sys
import landbridge as lb
from onnx import TensorProto, helper
x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ("n", 4)) for name in "xy")
graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "one", [x], [y])
lb.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
print(*[name for name in sys.modules if name.startswith("sympy")], "onnx_ir" in sys.modules)
"""


def test_a_compile_does_not_load_what_computes_with_symbols() -> None:
    """Fails where onnx_ir begins to use sympy as it is imported, which makes every compile 0.3 s longer."""
    done = subprocess.run([sys.executable, "-c", COMPILE], capture_output=True, check=True, text=True, timeout=120)
    assert done.stdout.split() == ["sympy", "True"]
