"""Names in a model are what strangers wrote: on a terminal, in a log or on a page they are text and nothing else."""

from __future__ import annotations

import ast
import json
import re
import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import landbridge as lb
from landbridge.cli.output import tell_warnings
from landbridge.errors import LandbridgeError
from landbridge.text.printable import printable
from tests.cli.command_line import invoke

#: The title of a terminal, a bell, a C1 control, a line of its own, text that is written backwards, a wiped line.
HOSTILE = "a\x1b]0;owned\x07\x9b31m\nlandbridge: all is well\r\u202egnp.exe\u2066\x7f\x1b[2K<script>alert(1)</script>"
#: What acts on a terminal; an end of a line is looked at apart.
ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def named(subject: str) -> str:
    return f"{subject}{HOSTILE}"


def model(op: str = "MatMul", domain: str = "") -> ModelProto:
    """A product and more, of which everything that can have a hostile name has one."""
    x = helper.make_tensor_value_info(named("x"), TensorProto.FLOAT, [1, 8])
    y = helper.make_tensor_value_info(named("y"), TensorProto.FLOAT, [1, 8])
    nodes = [
        helper.make_node(op, [named("x"), named("w")], [named("h")], name=named("first"), domain=domain),
        helper.make_node("Softmax", [named("h")], [named("s")], name=named("second")),
        helper.make_node("Add", [named("s"), named("b")], [named("y")], name=named("third")),
    ]
    weights = [
        numpy_helper.from_array(np.ones((8, 8), np.float32), named("w")),
        numpy_helper.from_array(np.ones(8, np.float32), named("b")),
    ]
    graph = helper.make_graph(nodes, named("graph"), [x], [y], weights)
    opsets = [helper.make_opsetid("", 17), *([helper.make_opsetid(domain, 1)] if domain else [])]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name=named("p"), doc_string=named("d"))


def is_safe(text: str) -> bool:
    return not ACTS.search(text) and "\nlandbridge: all is well" not in text


def saved(folder: Path, proto: ModelProto) -> Path:
    path = folder / "m.onnx"
    onnx.save(proto, path)
    return path


COMMANDS = (
    "inspect {m}",
    "run {m} --output-dir {d}/outputs --memory --trace {d}/run.json",
    "compile {m} -o {d}/m.lbx --dump {d}/ir",
    "explain {m} --runs 1 --html {d}/page.html --svg {d}/picture.svg",
    "trace {m} -o {d}/trace.json --html {d}/page.html --svg {d}/picture.svg",
    "plan {m} --html {d}/page.html --svg {d}/picture.svg",
    "export {m} --c {d}/c --name m",
    "compare {m} --every",
    "bench {m} --rounds 1 --alone",
    "opt {m} -p place,fuse",
    "compile {m} -o {d}/m.lbx --place nothing=cpu",
    "run {m} --input nothing={d}/nothing.npy",
    "run {m} --sanitize",
)


@pytest.mark.sample(5)
@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_that_a_command_prints_acts_on_a_terminal(command: str, as_json: bool, tmp_path: Path) -> None:
    path = saved(tmp_path, model())
    words = [word.format(m=path, d=tmp_path) for word in command.split()]
    ended = invoke([*words, *(["--json"] if as_json else [])])
    assert ended.exception is None
    assert is_safe(ended.stdout), ascii(ended.stdout)
    assert is_safe(ended.stderr), ascii(ended.stderr)
    for page in (*tmp_path.glob("*.html"), *tmp_path.glob("*.svg")):
        text = page.read_text()
        assert not ACTS.search(text)
        assert "<script>alert" not in text
    if as_json and ended.exit_code == 0:
        json.loads(ended.stdout)


def test_names_are_still_to_be_read(tmp_path: Path) -> None:
    ended = invoke(["inspect", str(saved(tmp_path, model()))], {"COLUMNS": "400"})
    assert r"xa\x1b]0;owned\x07\x9b31m\nlandbridge: all is well\r\u202egnp.exe" in ended.stdout
    proto = model()
    proto.graph.input[0].name = proto.graph.node[0].input[0] = "größe.名前 🙂"
    ended = invoke(["inspect", str(saved(tmp_path, proto))], {"COLUMNS": "400"})
    assert "größe.名前 🙂" in ended.stdout


def test_a_plan_of_strangers(tmp_path: Path) -> None:
    file = tmp_path / "plan.csv"
    file.write_text(f'id,lower,upper,size\n"{HOSTILE}",0,3,64\nb,1,2,64\n')
    ended = invoke(["plan", str(file), "--html", str(tmp_path / "page.html")])
    assert ended.exception is None
    assert is_safe(ended.output), ascii(ended.output)


FAULTS = (
    model("Unheard" + HOSTILE, "of.strangers"),
    model("Unheard", "of.strangers" + HOSTILE),
    model("Conv"),
    model("Reshape"),
)


@pytest.mark.parametrize("number", range(len(FAULTS)))
def test_errors_name_nodes_and_do_nothing_else(number: int, tmp_path: Path) -> None:
    with pytest.raises(LandbridgeError) as raised:
        lb.compile(FAULTS[number])
    assert not ACTS.search(str(raised.value))
    for command in ("compile", "run", "inspect", "explain", "plan"):
        ended = invoke([command, str(saved(tmp_path, FAULTS[number]))])
        assert ended.exception is None
        assert is_safe(ended.output), ascii(ended.output)


def test_errors_and_warnings_escape_what_acts() -> None:
    kinds = [kind for kind in vars(lb.errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    ours = [kind for kind in kinds if kind.__module__ == "landbridge.errors" and not kind.__name__.startswith("_")]
    assert len(ours) > 40
    for kind in ours:
        assert str(kind(f"{HOSTILE}\tand\n  more")) == printable(HOSTILE, keep="\n") + "\tand\n  more"
        assert str(kind("plain: größe")) == "plain: größe"


def test_warnings_escape_what_acts(tmp_path: Path) -> None:
    proto = model()
    proto.graph.node.insert(0, proto.graph.node.pop())
    with pytest.warns(lb.ModelWarning, match="no topological order") as reported:
        lb.compile(proto)
    assert not any(ACTS.search(str(each.message)) for each in reported)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        tell_warnings()
        ended = invoke(["compile", str(saved(tmp_path, proto))])
    assert "warning: " in ended.stderr and "no topological order" in ended.stderr
    assert is_safe(ended.output), ascii(ended.output)


def test_all_that_commands_print_goes_one_way() -> None:
    """``cli/output.py`` escapes: nothing else of ``cli`` prints, but help, the version and what starts without it."""
    folder = Path(lb.__file__).parent / "cli"
    allowed = {"app.py": {"_run", "_print_version"}, "__init__.py": {"_check_numpy"}}
    writes = ("print", "sys.stdout.write", "sys.stderr.write")
    found: dict[str, set[str]] = {}
    for file in folder.rglob("*.py"):
        if file.name == "output.py" or "device_template" in file.parts:
            continue
        for function in ast.walk(ast.parse(file.read_text())):
            if isinstance(function, ast.FunctionDef):
                calls = [ast.unparse(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)]
                if any(call in writes for call in calls):
                    found.setdefault(file.name, set()).add(function.name)
    assert found == allowed
