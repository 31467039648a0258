"""Recognizes files that are not ONNX models by their first bytes, and says what to do about them."""

from __future__ import annotations

import io
import zipfile

#: The first bytes of a kind of file, its name, and the way out.
_BEGINNINGS: tuple[tuple[bytes, str, str], ...] = (
    (b"version https://git-lfs.github.com/", "a pointer of Git LFS, which stands for the file", "run `git lfs pull`"),
    (b"<!doctype html", "a web page", "download the file itself, as by the page's link to the raw file"),
    (b"<html", "a web page", "download the file itself, as by the page's link to the raw file"),
    (b"<?xml", "XML, as of an OpenVINO model", "export the network to ONNX where it was trained"),
    (b"\x1f\x8b", "compressed by gzip", "unpack it: `gunzip FILE`"),
    (b"\xfd7zXZ", "compressed by xz", "unpack it: `unxz FILE`"),
    (b"BZh", "compressed by bzip2", "unpack it: `bunzip2 FILE`"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd", "unpack it: `unzstd FILE`"),
    (b"\x93NUMPY", "an array of numpy", "give it as an input: --input NAME=FILE"),
    (b"\x89LBX", "a compiled program", "load it: landbridge.load(FILE), or name it FILE.lbx"),
    (b"\x7fELF", "a program or library of Linux", "give the .onnx file"),
    (b"%PDF", "a PDF", "give the .onnx file"),
    (b"GGUF", "a GGUF model", "export the network to ONNX where it was trained"),
    (b"\x80\x02", "a pickle, as torch.save writes it", "export the module: torch.onnx.export(module, args, FILE)"),
    (b"{", "JSON text", "give the .onnx file"),
)
_TORCH = ("data.pkl", "an archive of torch.save", "export the module: torch.onnx.export(module, args, FILE)")
_ARCHIVES = (_TORCH, (".npy", "an archive of numpy arrays", "give one as an input: --input NAME=FILE.npy"))


def what_it_is(content: bytes) -> str:
    """Returns ``"a web page; download ..."`` for bytes of a known kind, ``""`` for others."""
    if not content:
        return "it is empty; export or download it again"
    head = content[:256].lstrip()
    for beginning, subject, way_out in _BEGINNINGS:
        if head[: len(beginning)].lower() == beginning.lower():
            return f"it is {subject}; {way_out}"
    if head[4:8] == b"TFL3":
        return "it is a TensorFlow Lite model; convert it with tf2onnx: `python -m tf2onnx.convert --tflite FILE`"
    if len(content) > 10 and content[8:9] == b"{" and int.from_bytes(content[:8], "little") < 1 << 32:
        return "it is a file of safetensors, weights without a network; export the network to ONNX"
    if head[:2] == b"PK":
        return _archive(content)
    return ""


def _archive(content: bytes) -> str:
    try:
        names = zipfile.ZipFile(io.BytesIO(content)).namelist()
    except zipfile.BadZipFile:
        names = []
    for ending, subject, way_out in _ARCHIVES:
        if any(name.endswith(ending) for name in names):
            return f"it is {subject}; {way_out}"
    inside = [name for name in names if name.endswith(".onnx")]
    return f"it is a zip archive; unpack it{f' and give {inside[0]}' if inside else ''}"
