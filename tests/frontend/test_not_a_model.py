"""Files that are no models are told for what they are."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np
import onnx
import pytest

import landbridge as lb
from landbridge.frontend.onnx.not_a_model import what_it_is
from tests.whole_models.small_models import add

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


def _npy() -> bytes:
    file = io.BytesIO()
    np.save(file, np.ones(3))
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\n<!DOCTYPE html><html></html>", "a web page"),
        (b"<HTML><head>", "a web page"),
        (POINTER, "git lfs pull"),
        (gzip.compress(b"model", mtime=0), "gunzip"),
        (_npy(), "an array of numpy"),
        (b"\x1c\0\0\0TFL3....", "tf2onnx"),
        (b'\x40\0\0\0\0\0\0\0{"a":{"dtype":"F32"}}', "safetensors"),
        (b"", "it is empty"),
        (b'<?xml version="1.0"?><net/>', "OpenVINO"),
    ],
)
def test_what_is_known_is_named(content: bytes, says: str, tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(content)
    for model in (file, str(file), content):
        with pytest.raises(lb.ImportModelError, match=says):
            lb.compile(model)


def test_a_compiled_program_is_reported(tmp_path: Path) -> None:
    lb.compile(add()).save(tmp_path / "add.lbx")
    with pytest.raises(lb.ImportModelError, match=r"landbridge\.load"):
        lb.compile(tmp_path / "add.lbx")


def test_models_are_none_of_these() -> None:
    assert what_it_is(add().SerializeToString()) == ""
    assert what_it_is(add(1).SerializeToString()[:20]) == ""


def test_a_file_that_is_not_there_names_one_like_it(tmp_path: Path) -> None:
    onnx.save(add(), tmp_path / "resnet.onnx")
    with pytest.raises(lb.ImportModelError, match=r"did you mean 'resnet\.onnx'"):
        lb.compile(tmp_path / "resnt.onnx")
    with pytest.raises(lb.ImportModelError, match="there is no folder"):
        lb.compile(tmp_path / "models" / "resnet.onnx")
    with pytest.raises(lb.ImportModelError, match=r"is a folder, and no model; it holds resnet\.onnx"):
        lb.compile(tmp_path)
