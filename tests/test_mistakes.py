"""What a newcomer gives to functions that want something else: an error of ours that says what to give."""

from __future__ import annotations

import errno
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

import landbridge as lb
from tests.whole_models.small_models import add, edges

MODEL = add()
PROGRAM = lb.compile(MODEL)
X = np.ones(64, np.float32)

MISTAKES: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "Session of a path": (lambda: lb.Session("a.onnx"), lb.InputError, r"lb\.compile\('a\.onnx'\)"),
    "Session of a file": (lambda: lb.Session(Path("a.lbx")), lb.InputError, r"lb\.load\('a\.lbx'\)"),
    "Session of a model": (lambda: lb.Session(MODEL), lb.InputError, r"lb\.compile\(model\)"),
    "Session of nothing": (lambda: lb.Session(None), lb.InputError, "not NoneType"),
    "compile an object": (lambda: lb.compile(object()), lb.ImportModelError, r"legal: a path, .*ModelProto"),
    "compile a program": (lambda: lb.compile(PROGRAM), lb.ImportModelError, "compiled already"),
    "compile a graph": (lambda: lb.compile(MODEL.graph), lb.ImportModelError, "make_model"),
    "compile a buffer": (lambda: lb.compile(io.BytesIO()), lb.ImportModelError, r"getvalue\(\)"),
    "compile no path": (lambda: lb.compile(""), lb.ImportModelError, "name a file"),
    "a device for a target": (lambda: lb.compile(MODEL, "cpu"), lb.TargetError, "target 'llvm'"),
    "an option that is none": (lambda: lb.compile(MODEL, shape={"x": (64,)}), TypeError, r"did you mean 'shapes'\?"),
    "an input by keyword": (lambda: lb.Session(PROGRAM)(y=X), lb.UnknownArgumentError, r"session\(\{'.*inputs: x"),
    "a misspelt out": (lambda: lb.Session(PROGRAM)(X, X, oout=X), TypeError, "did you mean 'out'"),
    "an output before a run": (lambda: lb.Session(PROGRAM).get_output(0), lb.InputError, "session.outputs has"),
    "a shape alone": (lambda: lb.compile(MODEL, shapes=(64,)), lb.InputError, r'shapes=\{"x"'),
    "a shape as text": (lambda: lb.compile(MODEL, shapes={"x": "64"}), lb.ShapeError, "lists its extents"),
    "an extent None": (lambda: lb.compile(MODEL, shapes={"x": (None,)}), lb.ShapeError, 'as "N"'),
    "a part of an extent": (lambda: lb.compile(MODEL, shapes={"x": (6.4,)}), lb.ShapeError, "give a whole number"),
    "an unknown dimension": (lambda: lb.compile(MODEL, dims={"N": 4}), lb.InputError, "no open dimension 'N'"),
    "a frame as a dict": (lambda: lb.compile(MODEL, inputs={"x": {}}), lb.InputError, "InputSpec"),
    "one name for a list": (lambda: lb.compile(MODEL, mutable="b"), lb.InputError, "names of weights"),
    "one output for a list": (lambda: lb.compile(MODEL, extra_outputs="y"), lb.InputError, "names of tensors"),
    "a place alone": (lambda: lb.compile(MODEL, place="cpu"), lb.InputError, "places by pattern"),
    "many nodes": (lambda: lb.compile(MODEL, max_nodes="1"), lb.InputError, "legal: a number"),
    "a whole float for an extent": (lambda: lb.compile(MODEL, shapes={"x": (64.0,)}), lb.ShapeError, "a whole number"),
    "a constant of no number": (
        lambda: lb.compile(MODEL, constants={"x": object()}),
        lb.InputError,
        "numbers of float32",
    ),
    "a number for a place": (lambda: lb.compile(MODEL, place={"*": 3}), lb.PlacementError, "name of a vdevice"),
    "a number for a folder": (lambda: lb.compile(MODEL, dump=3), lb.InputError, "path of a folder"),
    "a number for a target": (lambda: lb.compile(MODEL, 3), lb.InputError, "a target as text"),
    "no such target": (lambda: lb.compile(MODEL, "nope"), lb.TargetError, r"'nope'; known: (.*, )?c, "),
    "no such file": (lambda: lb.load("there is none.lbx"), lb.ExecutableError, r"no file .* in '/.*; make it"),
    "no name of a file": (lambda: lb.load("a\0b"), lb.ExecutableError, "not a name of a file"),
    "lists of several lengths": (lambda: lb.asarray([[1, 2], [3]]), lb.InputError, "equal lengths"),
    "an array of nothing": (lambda: lb.asarray(None), lb.InputError, "not NoneType"),
    "an array of text": (lambda: lb.asarray("abc"), lb.InputError, "not str"),
    "load nothing": (lambda: lb.load(None), lb.InputError, "path of an .lbx"),
    "load a folder": (lambda: lb.load("."), lb.ExecutableError, "is a folder"),
    "save nowhere": (lambda: PROGRAM.save(None), lb.InputError, "path of a file"),
    "no device": (lambda: lb.device(None), lb.UnknownDeviceError, "named by text"),
    "a number for a device": (lambda: lb.device(0), lb.UnknownDeviceError, "named by text"),
    "Target of a number": (lambda: lb.Target.from_device(0), lb.TargetError, r"what landbridge\.device\(name\) gives"),
    "an array first": (lambda: lb.Session(PROGRAM).set_input(X, "x"), lb.InputError, "a name comes first"),
    "threads as text": (lambda: lb.Session(PROGRAM, num_threads="2"), lb.InputError, "a number from 1"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_reported_with_the_way_out(name: str) -> None:
    action, kind, says = MISTAKES[name]
    with pytest.raises(kind, match=says):
        action()


def test_a_missing_program_is_a_missing_file_too(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as reported:
        lb.load(tmp_path / "a.lbx")
    assert isinstance(reported.value, lb.errors.MissingFileError)
    assert reported.value.errno == errno.ENOENT
    PROGRAM.save(tmp_path / "ab.lbx")
    with pytest.raises(lb.errors.MissingFileError, match=r"did you mean 'ab\.lbx'"):
        lb.load(tmp_path / "a.lbx")


def test_a_name_that_is_too_long_is_reported() -> None:
    with pytest.raises(lb.errors.UnreadableFileError, match="cannot be opened: File name too long"):
        lb.load("a" * 300)


def test_numbers_of_numpy_are_numbers() -> None:
    assert np.asarray(lb.Session(PROGRAM, num_threads=np.int64(1))(X)[0]).shape == (64,)
    shapes = {"x": np.array([1, 3, 16, 16])}
    assert lb.compile(edges(16, 16), shapes=shapes).main.inputs[0].shape == (1, 3, 16, 16)


OPEN = '<ir_version: 8, opset_import: ["": 18]> n (float[N, 4] x) => (float[N, 4] y) { y = Relu (x) }'


@pytest.mark.parametrize("options", [{}, {"time_limit": 60}], ids=["", "limited"])
def test_a_session_of_open_dimensions_names_its_inputs(options):
    session = lb.Session(lb.compile(onnx.parser.parse_model(OPEN)), **options)
    with pytest.raises(lb.UnknownArgumentError, match=r"no keyword 'images'; .* inputs: x"):
        session(images=X)
    with pytest.raises(lb.InputError, match=r"session\.outputs has shapes"):
        session.get_output(0)


TWO = '<ir_version: 8, opset_import: ["": 18]> n (float[N] x, float[W] z) => (float[N] y, float[W] q) {'
TWO += " y = Relu (x)  q = Relu (z) }"


@pytest.mark.parametrize(
    ("options", "listed"),
    [
        ({}, "N, W"),
        ({"shapes": {"z": (7,)}}, "N"),
        ({"shapes": {"z": ("V",)}}, "N, V"),
        ({"shapes": {"x": (2,), "z": (7,)}}, "none"),
        ({"constants": {"z": [1.0, 2.0]}}, "N"),
    ],
)
def test_dimensions_that_are_fixed_are_not_listed_as_open(options, listed):
    with pytest.raises(lb.InputError, match=f"no open dimension 'Q'; it has: {listed}$"):
        lb.compile(onnx.parser.parse_model(TWO), dims={"Q": 3}, **options)
