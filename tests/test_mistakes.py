"""What a newcomer gives to functions that want something else: an error of ours that says what to give."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
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
    "a shape alone": (lambda: lb.compile(MODEL, shapes=(64,)), lb.InputError, r'shapes=\{"x"'),
    "a shape as text": (lambda: lb.compile(MODEL, shapes={"x": "64"}), lb.ShapeError, "lists its extents"),
    "an extent None": (lambda: lb.compile(MODEL, shapes={"x": (None,)}), lb.ShapeError, 'as "N"'),
    "a part of an extent": (lambda: lb.compile(MODEL, shapes={"x": (6.4,)}), lb.ShapeError, "give a number"),
    "an unknown dimension": (lambda: lb.compile(MODEL, dims={"N": 4}), lb.InputError, "no open dimension 'N'"),
    "a frame as a dict": (lambda: lb.compile(MODEL, inputs={"x": {}}), lb.InputError, "InputSpec"),
    "one name for a list": (lambda: lb.compile(MODEL, mutable="b"), lb.InputError, "names of weights"),
    "one output for a list": (lambda: lb.compile(MODEL, extra_outputs="y"), lb.InputError, "names of tensors"),
    "a place alone": (lambda: lb.compile(MODEL, place="cpu"), lb.InputError, "places by pattern"),
    "many nodes": (lambda: lb.compile(MODEL, max_nodes="1"), lb.InputError, "legal: a number"),
    "load nothing": (lambda: lb.load(None), lb.InputError, "path of an .lbx"),
    "load a folder": (lambda: lb.load("."), lb.ExecutableError, "is a folder"),
    "save nowhere": (lambda: PROGRAM.save(None), lb.InputError, "path of a file"),
    "no device": (lambda: lb.device(None), lb.UnknownDeviceError, "named by text"),
    "a number for a device": (lambda: lb.device(0), lb.UnknownDeviceError, "named by text"),
    "Target of a name": (lambda: lb.Target.from_device("cpu"), lb.TargetError, r"landbridge\.device\('cpu'\)"),
    "an array first": (lambda: lb.Session(PROGRAM).set_input(X, "x"), lb.InputError, "a name comes first"),
    "threads as text": (lambda: lb.Session(PROGRAM, num_threads="2"), lb.InputError, "a number from 1"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_with_the_way_out(name: str) -> None:
    action, kind, says = MISTAKES[name]
    with pytest.raises(kind, match=says):
        action()


def test_numbers_of_numpy_are_numbers() -> None:
    assert np.asarray(lb.Session(PROGRAM, num_threads=np.int64(1))(X)[0]).shape == (64,)
    shapes = {"x": np.array([1, 3, 16, 16])}
    assert lb.compile(edges(16, 16), shapes=shapes).main.inputs[0].shape == (1, 3, 16, 16)
