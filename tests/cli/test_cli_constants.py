"""``landbridge compile plan.mlir --constants FILE``: the constants of IR text come from a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import landbridge as lb
from landbridge.cli.constant_file import read_constants
from landbridge.errors import InputError
from tests.cli.command_line import invoke
from tests.frontend.test_ir_text import network, result


def write_safetensors(file: Path, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
    """A file of safetensors, as its format is described; all arrays are float32."""
    header: dict[str, Any] = {"__metadata__": {"format": "np"}}
    begin = 0
    for name, array in arrays.items():
        header[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": [begin, begin + array.nbytes]}
        begin += array.nbytes
    text = json.dumps(header).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(a.tobytes() for a in arrays.values()))


def write(file: Path, executable: lb.Executable) -> None:
    arrays = {name: np.asarray(array) for name, array in executable.constants.items()}
    if file.suffix == ".npz":
        np.savez(file, **arrays, more=np.zeros(3))
    elif file.suffix == ".safetensors":
        write_safetensors(file, arrays | {"more": np.zeros(3, np.float32)})
    else:
        executable.save(file)


@pytest.mark.parametrize("suffix", [".npz", ".safetensors", ".lbx"])
@pytest.mark.parametrize("options", [{}, {"mutable": ["w"]}], ids=["constants", "parameters"])
def test_the_program_is_that_of_the_model(tmp_path: Path, suffix: str, options: Any) -> None:
    executable = lb.compile(network(), dump=tmp_path, **options)
    (plan,) = tmp_path.glob("*-plan.mlir")
    file = tmp_path / f"weights{suffix}"
    write(file, executable)
    done = invoke(["compile", str(plan), "--constants", str(file), "-o", str(tmp_path / "again.lbx"), "--json"])
    assert done.exit_code == 0, done.stderr
    assert "seeded" not in done.stderr
    np.testing.assert_array_equal(result(lb.load(tmp_path / "again.lbx")), result(executable))


def test_a_file_that_does_not_help(tmp_path: Path) -> None:
    executable = lb.compile(network(), dump=tmp_path)
    (plan,) = tmp_path.glob("*-plan.mlir")
    for name, reason in (
        ("weights.bin", "is none of .npz, .safetensors, .lbx"),
        ("other.npz", "names no array of"),
        ("broken.npz", "is no archive of plain arrays"),
        ("broken.safetensors", "is no file of safetensors"),
    ):
        (tmp_path / name).write_bytes(b"\x00" * 40)
        if name == "other.npz":
            np.savez(tmp_path / name, elsewhere=np.zeros(3))
        done = invoke(["compile", str(plan), "--constants", str(tmp_path / name)], env={"COLUMNS": "400"})
        assert done.exit_code != 0 and reason in done.stderr, (name, done.stderr)
    wrong = {name: np.zeros(7, np.float32) for name in executable.constants}
    np.savez(tmp_path / "wrong.npz", **wrong)
    done = invoke(["compile", str(plan), "--constants", str(tmp_path / "wrong.npz")], env={"COLUMNS": "400"})
    assert done.exit_code != 0 and "float32[7]; the IR names" in done.stderr
    (tmp_path / "m.onnx").write_bytes(network().SerializeToString())
    line = ["compile", str(tmp_path / "m.onnx"), "--constants", str(tmp_path / "wrong.npz")]
    done = invoke(line, env={"COLUMNS": "400"})
    assert done.exit_code != 0 and "has its own constants" in done.stderr


MODEL = "builtin.module {\n  lb.constant @w\n}\n"
#: Entries of a header, of which few are legal.
ENTRY = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["F32", "BF16", "F8_E4M3", "F4", 3, None]),
        "shape": st.one_of(st.lists(st.integers(-2, 5), max_size=3), st.just("x")),
        "data_offsets": st.lists(st.one_of(st.integers(-8, 80), st.just(None), st.just(1.5)), max_size=3),
    }
)


@given(st.one_of(ENTRY, st.none(), st.integers(), st.lists(st.integers(), max_size=2)), st.binary(max_size=80))
@settings(max_examples=150, deadline=None)
def test_any_header_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, entry: Any, content: bytes) -> None:
    folder = tmp_path_factory.getbasetemp()
    (folder / "m.mlir").write_text(MODEL)
    text = json.dumps({"w": entry}).encode()
    (folder / "w.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + content)
    try:
        found = read_constants(folder / "w.safetensors", folder / "m.mlir")["w"]
    except InputError as error:
        assert "w.safetensors" in str(error)
        return
    begin, end = entry["data_offsets"]
    assert found.shape == tuple(entry["shape"]) and found.tobytes() == content[begin:end]
