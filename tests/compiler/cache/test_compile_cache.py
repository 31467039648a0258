"""A compile that was done before gives what was kept: the same program, warnings and sources, never another's."""

from __future__ import annotations

import configparser
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import landbridge as lb
from landbridge.compiler.cache.key import RUN_SIDE, code_text
from landbridge.files.cache_folder import open_folder
from landbridge.operators import REGISTRY, definition, host_operator
from tests.executable.contents import contents

X = np.arange(8, dtype=np.float32)


def model(addend: float = 1.0, length: object = 8, declared: object = None) -> onnx.ModelProto:
    """``y = x + addend``."""
    bias = numpy_helper.from_array(np.full(1, addend, np.float32), "b")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [length])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [length if declared is None else declared])
    graph = helper.make_graph([helper.make_node("Add", ["x", "b"], ["y"], name="add")], "g", [x], [y], [bias])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of entries of this test."""
    monkeypatch.setenv("LANDBRIDGE_CACHE", str(tmp_path / "kept"))
    return tmp_path / "kept"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A model's file."""
    onnx.save(model(), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


@pytest.fixture
def compiles(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A line for every compile that is done."""
    import landbridge.compiler.compilation as compilation

    done: list[str] = []
    whole = compilation.compile_model

    def counted(*args: object, **kwargs: object) -> lb.Executable:
        done.append("")
        return whole(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(compilation, "compile_model", counted)
    return done


def result(executable: lb.Executable) -> list[float]:
    return np.asarray(lb.Session(executable)(X[: executable.main.inputs[0].shape[0]])[0]).tolist()


def test_the_second_compile_is_the_first_one_again(folder: Path, file: Path, compiles: list[str]) -> None:
    first, second = lb.compile(file), lb.compile(str(file))
    assert len(compiles) == 1 and len(list(folder.glob("*.lbx"))) == 1
    assert result(first) == result(second) == (X + 1).tolist()
    assert second.metadata == first.metadata and second.sources == first.sources
    assert second.functions == first.functions and second.memory == first.memory
    assert contents(second.modules) == contents(first.modules)
    with pytest.raises(lb.OutputFileError, match="made from"):
        second.save(file)


def test_a_copy_of_the_file_is_the_same_model_by_another_name(folder: Path, file: Path, compiles: list[str]) -> None:
    lb.compile(file)
    other = file.with_name("other.onnx")
    other.write_bytes(file.read_bytes())
    assert lb.compile(other).metadata["model"] == "other" and len(compiles) == 1


@pytest.mark.parametrize("form", ["bytes", "message", "text"])
def test_models_in_memory(folder: Path, tmp_path: Path, compiles: list[str], form: str) -> None:
    if form == "text":
        lb.compile(model(), dump=tmp_path / "ir")
        compiles.clear()
        (printed,) = (tmp_path / "ir").glob("*-fuse.mlir")
        given: object = printed.read_text()
    else:
        given = model().SerializeToString() if form == "bytes" else model()
    assert result(lb.compile(given)) == result(lb.compile(given)) == (X + 1).tolist()
    assert len(compiles) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"target": "llvm -num-cores=1"},
        {"target": "llvm -denormals=keep"},
        {"target": {"a": "llvm"}},
        {"shapes": {"x": (8,)}},
        {"inputs": {"x": lb.InputSpec(dtype="uint8")}},
        {"constants": {"x": X}},
        {"constants": {"x": X + 1}},
        {"constants": {"x": X.astype(np.float64)}},
        {"mutable": ["b"]},
        {"extra_outputs": ["y"]},
        {"on_mismatch": "copy"},
        {"max_nodes": 10},
        {"check_indices": True},
        {"sanitize": True},
        {"place": {"add": "cpu"}},
        {"place": {"add": "cpu", "y": "cpu"}},
        {"place": {"y": "cpu", "add": "cpu"}},
        {"spill": {"global.x": "global"}},
    ],
    ids=str,
)
def test_every_option_counts(folder: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, object]) -> None:
    names: list[str] = []
    monkeypatch.setattr("landbridge.compiler.cache.read_entry", lambda folder, name: names.append(name))
    monkeypatch.setattr("landbridge.compiler.compilation.compile_model", lambda *_, **__: lb.load)
    monkeypatch.setattr("landbridge.compiler.cache.CacheEntry.keep", lambda *_: None)
    for options in ({}, change, {}, change):
        lb.compile(model(), **options)
    plain, changed, *again = names
    assert plain != changed and again == [plain, changed]


def test_weights_target_and_compiler_count(folder: Path, compiles: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert result(lb.compile(model(1.0))) == (X + 1).tolist()
    assert result(lb.compile(model(2.0))) == (X + 2).tolist()
    lb.compile(model(1.0), target="c")
    assert len(compiles) == 3
    monkeypatch.setattr("landbridge.compiler.cache.key.code_text", lambda: "another compiler")
    lb.compile(model(1.0))
    assert len(compiles) == 4


@pytest.mark.parametrize("file", ["compiler/api.py", "codegen/cpu_runtime/runtime.ll", "codegen/c/prelude.h"])
def test_every_file_that_images_are_made_of_counts(file: str) -> None:
    assert f'["{file}", ' in code_text()


def test_files_that_compiles_never_import_do_not_count() -> None:
    """Those of the run side, which a contract of .importlinter keeps from the compiler, and the commands."""
    contracts = configparser.ConfigParser()
    contracts.read(Path(__file__).parents[3] / ".importlinter")
    forbidden = contracts["importlinter:contract:compile-side"]["forbidden_modules"].split()
    never_imported = {name.removeprefix("landbridge.") for name in forbidden} | {"cli"}
    assert never_imported >= RUN_SIDE
    assert not [folder for folder in RUN_SIDE if f'["{folder}/' in code_text()]


def test_what_has_no_digest_is_compiled(folder: Path, compiles: list[str], tmp_path: Path) -> None:
    for _ in range(2):
        lb.compile(model(), place=lambda node: None)
        lb.compile(model(), constants={"x": lb.asarray(X)})
        lb.compile(model(), dump=tmp_path / "ir")
    assert len(compiles) == 6 and not list(folder.glob("*"))


def test_targets_of_other_packages_are_compiled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("landbridge.compiler.cache.key.is_built_in", lambda kind: kind != "llvm")
    lb.compile(model())
    assert not list(folder.glob("*"))


def test_warnings_are_reported_again(folder: Path, compiles: list[str]) -> None:
    reported = []
    for _ in range(2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            lb.compile(model(declared=9))
        reported.append([(entry.category, str(entry.message)) for entry in caught])
    assert reported[0] == reported[1] and [kind for kind, _ in reported[0]] == [lb.ModelWarning]
    assert len(compiles) == 1


def test_other_files_of_the_model_count(folder: Path, tmp_path: Path, compiles: list[str]) -> None:
    file = tmp_path / "m.onnx"
    big = numpy_helper.from_array(np.full(8, 3, np.float32), "b")
    proto = model()
    proto.graph.initializer[0].CopyFrom(big)
    onnx.save(proto, file, save_as_external_data=True, location="weights", size_threshold=0)
    assert result(lb.compile(file)) == result(lb.compile(file)) == (X + 3).tolist()
    assert len(compiles) == 1 and str(tmp_path / "weights") in map(str, lb.compile(file).sources)
    (tmp_path / "weights").write_bytes(np.full(8, 5, np.float32).tobytes())
    assert result(lb.compile(file)) == (X + 5).tolist()
    (tmp_path / "weights").unlink()
    with pytest.raises(lb.ImportModelError):
        lb.compile(file)


def test_a_file_that_changes_during_the_compile_is_not_retained(
    folder: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import landbridge.compiler.compilation as compilation

    whole = compilation.compile_model

    def changed(*args: object, **kwargs: object) -> lb.Executable:
        found = whole(*args, **kwargs)  # type: ignore[arg-type]
        onnx.save(model(7.0), file)
        return found

    monkeypatch.setattr(compilation, "compile_model", changed)
    lb.compile(file)
    assert not list(folder.glob("*.lbx"))


def test_an_entry_that_is_damaged_is_compiled_again(folder: Path, file: Path, compiles: list[str]) -> None:
    lb.compile(file)
    (entry,) = folder.glob("*.lbx")
    content = entry.read_bytes()
    for place in (*range(0, len(content), max(1, len(content) // 9)), len(content) - 1):
        entry.write_bytes(content[:place] + bytes([content[place] ^ 16]) + content[place + 1 :])
        assert result(lb.compile(file)) == (X + 1).tolist()
    for length in (0, 100, len(content) - 1):
        entry.write_bytes(content[:length])
        assert result(lb.compile(file)) == (X + 1).tolist()
    assert len(compiles) > 3


def test_entries_without_notes_are_none(folder: Path, file: Path, compiles: list[str]) -> None:
    executable = lb.compile(file)
    (entry,) = folder.glob("*.lbx")
    replace(executable, sources=()).save(entry)
    assert result(lb.compile(file)) == (X + 1).tolist() and len(compiles) == 2


def test_the_entry_used_last_stays(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lb.compile(model(1.0))
    size = next(folder.glob("*.lbx")).stat().st_size
    monkeypatch.setenv("LANDBRIDGE_CACHE_BYTES", str(size * 5 // 2))
    lb.compile(model(2.0))
    running = lb.Session(lb.compile(model(2.0)))
    retained = lb.compile(model(1.0))  # used now
    lb.compile(model(3.0))
    found = open_folder()
    assert found is not None and len(found.entries()) == 2
    assert sum(entry.nbytes for entry in found.entries()) <= size * 5 // 2
    monkeypatch.setattr("landbridge.compiler.compilation.compile_model", lambda *_, **__: pytest.fail("it compiled"))
    assert result(lb.compile(model(1.0))) == result(retained) == (X + 1).tolist()
    assert np.asarray(running(X)[0]).tolist() == (X + 2).tolist()  # its entry is gone, its mapping is not


def test_what_is_larger_than_allowed_is_not_retained(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANDBRIDGE_CACHE_BYTES", "1000")
    assert result(lb.compile(model())) == (X + 1).tolist()
    assert not list(folder.glob("*.lbx"))


def test_a_full_disk_keeps_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("landbridge.compiler.cache.write_entry", full)
    assert result(lb.compile(model())) == (X + 1).tolist()


def test_processes_at_once(folder: Path, file: Path) -> None:
    program = (
        "import sys, numpy as np, landbridge as lb\n"
        "x = np.arange(8, dtype=np.float32)\n"
        "for _ in range(5): assert np.asarray(lb.Session(lb.compile(sys.argv[1]))(x)[0]).tolist() == (x + 1).tolist()\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, file], stderr=subprocess.PIPE) for _ in range(3)]
    assert [(child.communicate()[1], child.returncode) for child in running] == [(b"", 0)] * 3
    assert len(list(folder.glob("*.lbx"))) == 1


def test_a_compile_that_was_retained_needs_no_compiler(folder: Path, file: Path) -> None:
    lb.compile(file, target="llvm -mcpu=generic -num-cores=1")
    program = (
        "import sys, landbridge as lb\n"
        "lb.compile(sys.argv[1], target='llvm -mcpu=generic -num-cores=1')\n"
        "assert not {'xdsl', 'onnx'} & sys.modules.keys(), 'packages of the compiler'\n"
    )
    done = subprocess.run([sys.executable, "-c", program, file], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("value", ["0", ""])
def test_the_switch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("LANDBRIDGE_CACHE", value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    lb.compile(model())
    assert len(list(tmp_path.glob("landbridge/compiles/*.lbx"))) == (value != "0")


@pytest.mark.parametrize("variable", ["LANDBRIDGE_CACHE", "XDG_CACHE_HOME"])
def test_a_folder_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    (tmp_path / "landbridge").write_text("")
    monkeypatch.setenv("LANDBRIDGE_CACHE", "")
    monkeypatch.setenv(variable, str(tmp_path / "landbridge" if variable == "LANDBRIDGE_CACHE" else tmp_path))
    if variable == "LANDBRIDGE_CACHE":
        with pytest.raises(lb.InputError, match="LANDBRIDGE_CACHE=0"):
            lb.compile(model())
    else:
        assert result(lb.compile(model())) == (X + 1).tolist()


def test_a_folder_that_others_write_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANDBRIDGE_CACHE", str(tmp_path))
    tmp_path.chmod(0o777)
    with pytest.raises(lb.InputError, match="others may write to it"):
        lb.compile(model())


def test_a_limit_that_is_no_number(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANDBRIDGE_CACHE_BYTES", "2G")
    with pytest.raises(lb.InputError, match="LANDBRIDGE_CACHE_BYTES=2G"):
        lb.compile(model())


@pytest.mark.parametrize("kind", ["definition", "host_operator"])
@pytest.mark.filterwarnings("ignore::landbridge.FallbackWarning")
def test_operators_of_others_are_compiled_anew(kind: str, folder: Path, tmp_path: Path) -> None:
    """Their code may change between two compiles, in a notebook for example."""
    text = '<ir_version: 8, opset_import: ["": 17, "test": 1]> g (float[8] x) => (float[8] y) { y = test.Plus(x) }'
    of_others = onnx.parser.parse_model(text)
    onnx.save(of_others, tmp_path / "m.onnx")

    def compiled(added: float, given: object) -> float:
        with REGISTRY.isolated():
            if kind == "definition":
                body = f"c = Constant <value_float = {added}> () Y = Add (X, c)"
                definition("test", "Plus", inputs="X", outputs="Y")(lambda n: body)
            else:
                shapes = [((8,), "float32")]
                host_operator("test", "Plus", results=lambda x: shapes)(lambda x: x + np.float32(added))
            return float(np.asarray(lb.Session(lb.compile(given))(X)[0])[0])

    for given in (tmp_path / "m.onnx", of_others, of_others.SerializeToString()):
        assert [compiled(2.0, given), compiled(5.0, given)] == [2, 5]
    assert not [*folder.rglob("*.lbx")]


def test_operators_of_others_that_a_model_has_not(compiles: list[str], folder: Path, file: Path) -> None:
    with REGISTRY.isolated():
        host_operator("test", "Plus")(lambda x: x)
        lb.compile(file)
        lb.compile(file)
    assert len(compiles) == 1
