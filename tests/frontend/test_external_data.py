"""External data: read behind links that stay where the user named, and from nowhere else."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import landbridge as lb
from landbridge.errors import ImportModelError, InputError, ModelWarning
from landbridge.frontend.onnx import external_data
from tests.frontend.models import imported

W = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
X = np.ones((1, 64), np.float32)


def model(location: str = "w.bin", dims: tuple[int, ...] = (64, 64), **entries: object) -> ModelProto:
    """``x @ w``, ``w`` at ``location``."""
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        weight.external_data.add(key=key, value=str(value))
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 64)) for name in "xy")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [x], [y], [weight])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def saved(folder: Path, proto: ModelProto | None = None) -> Path:
    """A file of ``proto`` with ``w.bin`` beside it."""
    folder.mkdir(exist_ok=True)
    (folder / "w.bin").write_bytes(W.tobytes())
    path = folder / "m.onnx"
    path.write_bytes((proto or model()).SerializeToString())
    return path


def check(path: Path, **options: bool) -> None:
    (found,) = lb.Session(lb.compile(path, **options))(X)
    np.testing.assert_allclose(np.asarray(found), X @ W, rtol=1e-6)


def runs_there(path: Path) -> bool:
    """Whether onnxruntime takes the model."""
    try:
        onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    except Exception:  # its classes share no public base
        return False
    return True


def hub(folder: Path) -> Path:
    """The layout of the Hugging Face cache."""
    path = saved(folder)
    (folder / "blobs").mkdir()
    snapshot = folder / "snapshots" / "1f2e" / "onnx"
    snapshot.mkdir(parents=True)
    for name, blob in (("m.onnx", "aaa"), ("w.bin", "bbb")):
        (folder / name).rename(folder / "blobs" / blob)
        (snapshot / name).symlink_to(f"../../../blobs/{blob}")
    return snapshot / path.name


def linked(folder: Path) -> Path:
    path = saved(folder)
    (folder / "w.bin").rename(folder / "real")
    (folder / "w.bin").symlink_to("real")
    return path


def twins(folder: Path) -> Path:
    path = saved(folder)
    os.link(folder / "w.bin", folder / "twin")
    return path


@pytest.mark.parametrize(("make", "reported"), [(hub, "blobs/bbb"), (linked, "/real'"), (twins, "2 hard links")])
def test_links_that_installers_make(make: Callable[[Path], Path], reported: str, tmp_path: Path) -> None:
    path = make(tmp_path)
    assert runs_there(path)
    with pytest.warns(ModelWarning, match=f"behind links.*{reported}"):
        check(path)


def test_links_that_lead_elsewhere_are_refused_unless_they_are_allowed(tmp_path: Path) -> None:
    other = saved(tmp_path / "other").parent
    path = saved(tmp_path / "mine")
    (path.parent / "w.bin").unlink()
    (path.parent / "w.bin").symlink_to(other / "w.bin")
    assert not runs_there(path)
    with pytest.raises(ImportModelError, match=r"a link to .*other/w\.bin, which is outside.*allow_links=True"):
        lb.compile(path)
    with pytest.warns(ModelWarning, match="behind links"):
        check(path, allow_links=True)


def test_a_linked_folder_is_a_link(tmp_path: Path) -> None:
    saved(tmp_path / "other")
    path = saved(tmp_path / "mine", model("inside/w.bin"))
    (path.parent / "inside").symlink_to(tmp_path / "other")
    with pytest.raises(ImportModelError, match="which is outside"):
        lb.compile(path)


def test_what_only_looks_like_a_cache_is_none(tmp_path: Path) -> None:
    """A folder of strangers may have any links: blobs is the cache's own folder, and the file is in it."""
    secret = tmp_path / "secret"
    saved(secret)
    for number, blobs_are_a_link in enumerate((True, False)):
        cache = tmp_path / f"cache{number}"
        path = hub(cache)
        if blobs_are_a_link:
            for file in (cache / "blobs").iterdir():
                file.rename(secret / file.name)
            (cache / "blobs").rmdir()
            (cache / "blobs").symlink_to(secret)
        else:
            (cache / "blobs" / "bbb").unlink()
            (cache / "blobs" / "bbb").symlink_to(secret / "w.bin")
        with pytest.raises(ImportModelError, match=r"secret.*which is outside"):
            lb.compile(path)


@pytest.mark.parametrize("location", ["../other/w.bin", "/etc/passwd", "inside/../../other/w.bin", "", ".."])
@pytest.mark.parametrize("allow_links", [False, True])
def test_paths_do_not_leave_the_folder(location: str, allow_links: bool, tmp_path: Path) -> None:
    saved(tmp_path / "other")
    path = saved(tmp_path / "mine", model(location))
    assert not runs_there(path)
    with pytest.raises(ImportModelError, match="may not leave its folder"):
        lb.compile(path, allow_links=allow_links)


def test_what_is_no_file_is_reported(tmp_path: Path) -> None:
    path = saved(tmp_path)
    (tmp_path / "w.bin").unlink()
    with pytest.raises(ImportModelError, match=r"tensor 'w': its data .*w\.bin' cannot be opened: No such file"):
        lb.compile(path)
    os.mkfifo(tmp_path / "w.bin")
    with pytest.raises(ImportModelError, match="no regular file"):
        lb.compile(path)


def test_a_link_to_a_model_names_the_real_one(tmp_path: Path) -> None:
    path = saved(tmp_path / "real")
    link = tmp_path / "link.onnx"
    link.symlink_to(path)
    assert not runs_there(link)
    with pytest.raises(ImportModelError, match=r"the model is a link to .*real/m\.onnx.*name that"):
        lb.compile(link)


@pytest.mark.parametrize(
    ("entries", "reported"),
    [
        ({"length": 100}, "takes 16,384 bytes, and its external data says length=100"),
        ({"length": 16388}, "says length=16,388"),
        ({"length": -1}, "length='?-1"),
        ({"offset": -4}, "offset='?-4"),
        ({"offset": 8}, "bytes 8 to 16,392 .* has 16,384"),
        ({"offset": "abc"}, "offset='abc'"),
        ({"offset": "1" + "0" * 30}, "bytes 1,000,.* has 16,384"),
        ({"dims": (-64, 64)}, "extents from 0 are legal"),
        ({"dims": (1 << 40, 1 << 40)}, "takes bytes"),
    ],
)
def test_sizes_have_to_be_right(entries: dict[str, object], reported: str, tmp_path: Path) -> None:
    path = saved(tmp_path, model(**entries))  # type: ignore[arg-type]
    assert not runs_there(path)
    with pytest.raises(ImportModelError, match=reported):
        lb.compile(path)


def test_offsets_and_lengths_that_are_right(tmp_path: Path) -> None:
    path = saved(tmp_path, model("w.bin", offset=7, length=W.nbytes, checksum="any"))
    (tmp_path / "w.bin").write_bytes(bytes(7) + W.tobytes() + bytes(5))
    check(path)


def test_a_model_in_memory_reads_no_file_of_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(tmp_path)
    monkeypatch.chdir(tmp_path)
    for source in (model(), model().SerializeToString()):
        with pytest.raises(ImportModelError, match=r"a model in memory has no folder.*external_data=FOLDER"):
            lb.compile(source)
        for folder in (tmp_path, str(tmp_path), Path()):
            (found,) = lb.Session(lb.compile(source, external_data=folder))(X)
            np.testing.assert_allclose(np.asarray(found), X @ W, rtol=1e-6)
    with pytest.raises(InputError, match=r"external_data=.*is not a folder"):
        lb.compile(model(), external_data=tmp_path / "w.bin")


def test_the_folder_of_a_model_in_memory_has_the_same_rules(tmp_path: Path) -> None:
    saved(tmp_path / "other")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "w.bin").symlink_to("../other/w.bin")
    with pytest.raises(ImportModelError, match="which is outside"):
        lb.compile(model(), external_data=tmp_path / "mine")
    with pytest.raises(ImportModelError, match="may not leave"):
        lb.compile(model("../other/w.bin"), external_data=tmp_path / "mine")


def test_repaired_models_have_their_data_beside_them(tmp_path: Path) -> None:
    """onnx's checker looks for it in the working folder where it is given no path."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2048]) for name in "xy")
    node = helper.make_node("SimplifiedLayerNormalization", ["x", "w"], ["y"], epsilon=1e-6)
    weight = numpy_helper.from_array(np.full(2048, 3, np.float32), "w")
    graph = helper.make_graph([node], "g", [x], [y], [weight])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path = tmp_path / "m.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="m.data", size_threshold=0)
    (found,) = lb.Session(lb.compile(path))(np.ones((1, 2048), np.float32))
    np.testing.assert_allclose(np.asarray(found), 3, rtol=1e-5)


def everywhere(folder: Path) -> Path:
    """Weights of several dtypes, in initializers and in attributes, at odd offsets of one file."""
    arrays = {
        "f": np.float32([1, 2, 3]),
        "h": np.float16([4, 5, 6]),
        "b": np.float32([7, 8, 9]).astype(ml_dtypes.bfloat16),
        "n": np.zeros((0,), np.float32),
    }
    tensors = {name: numpy_helper.from_array(array, name) for name, array in arrays.items()}
    tensors["q"] = helper.make_tensor("q", TensorProto.INT4, (3,), [-8, 7, 1])
    content = b"\0"
    for tensor in tensors.values():
        packed = bytes([0x78, 0x01])  # two elements of 4 bits a byte
        raw = packed if tensor.data_type == TensorProto.INT4 else tensor.raw_data
        tensor.ClearField("raw_data")
        del tensor.int32_data[:]
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in {"location": "all.bin", "offset": len(content), "length": len(raw)}.items():
            tensor.external_data.add(key=key, value=str(value))
        content += raw
    (folder / "all.bin").write_bytes(content)
    scale = numpy_helper.from_array(np.float32(1), "one")
    nodes = [
        helper.make_node("Constant", [], ["hc"], value=tensors.pop("h")),
        helper.make_node("DequantizeLinear", ["q", "one"], ["qf"]),
        *(helper.make_node("Cast", [name], [f"{name}f"], to=TensorProto.FLOAT) for name in ("hc", "b")),
        helper.make_node("Concat", ["f", "n"], ["fn"], axis=0),
        helper.make_node("Sum", ["x", "fn", "hcf", "bf", "qf"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy")
    graph = helper.make_graph(nodes, "g", [x], [y], [*tensors.values(), scale])
    path = folder / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return path


@pytest.mark.parametrize("most_read", [0, 1 << 20])
def test_read_or_mapped_it_is_the_same(most_read: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(external_data, "_MOST_READ", most_read)
    path = everywhere(tmp_path)
    (found,) = lb.Session(lb.compile(path))(np.zeros(3, np.float32))
    np.testing.assert_array_equal(np.asarray(found), [1 + 4 + 7 - 8, 2 + 5 + 8 + 7, 3 + 6 + 9 + 1])
    assert bool(imported(path).files) == (most_read == 0)


def test_sparse_weights_have_no_external_data(tmp_path: Path) -> None:
    """onnx's own reader would look for it in the working folder."""
    path = saved(tmp_path)
    proto = onnx.load(path, load_external_data=False)
    values = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[64], data_location=TensorProto.EXTERNAL)
    values.external_data.add(key="location", value="w.bin")
    indices = numpy_helper.from_array(np.arange(64), "places")
    del proto.graph.initializer[:]
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [64, 64]))
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(ImportModelError, match=r"'w' has external data|sparse"):
        lb.compile(path)
