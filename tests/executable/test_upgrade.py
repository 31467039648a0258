"""Files of earlier formats, written again: each byte is that of today's writer, and results are what they were."""

from __future__ import annotations

import os
import shutil
import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

import landbridge as lb
from landbridge.errors import ExecutableError, OutputFileError
from landbridge.executable.executable import pieces_of_file
from landbridge.executable.file_reader import format_version
from landbridge.executable.header import (
    FORMAT_VERSION,
    LOOPS_VERSION,
    OLDEST_VERSION,
    ROWS_VERSION,
    SIZES_VERSION,
)
from landbridge.executable.host_calls import host_calls
from landbridge.executable.instructions import HostCall, If
from landbridge.executable.kernel_facts import KERNELS
from landbridge.executable.parts import CodeImage
from landbridge.executable.segments import SEGMENTS
from landbridge.executable.upgrade import upgrade_file
from landbridge.files import output_file
from tests.executable.contents import contents
from tests.executable.test_stored_files import ALL, STORED, check_results
from tests.vm import programs

OLD = STORED / "8-known.lbx"


def copied(file: Path, folder: Path) -> Path:
    return Path(shutil.copy(file, folder / file.name))


@pytest.mark.parametrize("file", ALL, ids=lambda file: file.stem)
def test_a_stored_file_gives_what_it_gave_and_has_the_bytes_of_a_save(file: Path, tmp_path: Path) -> None:
    path, before = copied(file, tmp_path), lb.load(file)
    found = upgrade_file(path)
    of_open_dimensions = dict.fromkeys(("loop", "open", "opencl"), SIZES_VERSION)
    newest = ({"rows": ROWS_VERSION} | of_open_dimensions).get(file.stem.partition("-")[2], LOOPS_VERSION - 1)
    assert (found.format_before, found.format_after) == (int(file.stem.partition("-")[0]), newest)
    assert (found.bytes_before, found.bytes_after) == (file.stat().st_size, path.stat().st_size)
    assert found.written == (file.read_bytes() != path.read_bytes()) and format_version(path) == newest
    check_results(path)
    after = lb.load(path, verify="all")
    assert path.read_bytes() == b"".join(pieces_of_file(after))
    assert (after.functions, after.memory) == (before.functions, before.memory)
    assert contents(after.modules) == contents(before.modules)
    assert {**after.metadata, KERNELS: ""} == {**before.metadata, KERNELS: ""}


@pytest.mark.parametrize("file", ALL, ids=lambda file: file.stem)
def test_a_second_upgrade_writes_nothing(file: Path, tmp_path: Path) -> None:
    path = copied(file, tmp_path)
    upgrade_file(path)
    before = path.stat()
    found = upgrade_file(path)
    assert not found.written and found.format_before == found.format_after
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


TEXTS = {
    "open": "g (float[n, 4] x) => (float[n, 4] y) { y = Relu(x) }",
    "segments": "g (float[n] x) => (int64[1, m] y) { i = NonZero(x)  y = Neg(i) }",
}


@pytest.mark.filterwarnings("ignore::landbridge.FallbackWarning")
@pytest.mark.parametrize("kind", TEXTS)
def test_what_is_saved_now_is_current(kind: str, tmp_path: Path) -> None:
    executable = lb.compile(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {TEXTS[kind]}'))
    path = tmp_path / "new.lbx"
    executable.save(path)
    assert (SEGMENTS in executable.metadata) == (kind == "segments")
    assert not upgrade_file(path).written


def test_a_file_that_lacks_fields_of_its_own_format_is_written_again(tmp_path: Path) -> None:
    path = copied(STORED / "9-known.lbx", tmp_path)
    found = upgrade_file(path)
    assert (found.format_before, found.format_after, found.written) == (9, 9, True)


def test_mode_and_links_are_retained(tmp_path: Path) -> None:
    path = copied(OLD, tmp_path)
    path.chmod(0o640)
    (tmp_path / "link.lbx").symlink_to(path)
    assert upgrade_file(tmp_path / "link.lbx").written
    assert (tmp_path / "link.lbx").is_symlink() and stat.S_IMODE(path.stat().st_mode) == 0o640
    assert format_version(path) == LOOPS_VERSION - 1


def test_to_another_file(tmp_path: Path) -> None:
    path, other = copied(OLD, tmp_path), tmp_path / "other.lbx"
    assert upgrade_file(path, other).written
    assert path.read_bytes() == OLD.read_bytes() and format_version(other) == LOOPS_VERSION - 1
    assert upgrade_file(other, path).written, "one that is current is written where it is asked for"
    assert path.read_bytes() == other.read_bytes()
    (tmp_path / "link.lbx").symlink_to(path)
    assert not upgrade_file(path, tmp_path / "link.lbx").written


def test_a_program_for_another_machine(tmp_path: Path) -> None:
    """Files of boards are upgraded on a desk: nothing of them is executed."""
    program = programs.add_weights()
    (module,) = program.modules
    assert isinstance(module.image, CodeImage)
    image = replace(module.image, isa="another", features=("no-such-feature",))
    path, other = tmp_path / "board.lbx", tmp_path / "other.lbx"
    replace(program, modules=(replace(module, image=image),)).save(path)
    assert upgrade_file(path, other).written and other.read_bytes() == path.read_bytes()


def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = copied(OLD, tmp_path)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, os.strerror(28))

    for failing in ("fsync", "rename"):
        with monkeypatch.context() as patched:
            patched.setattr(output_file.os, failing, full)
            with pytest.raises(OutputFileError, match=r"8-known.lbx cannot be written: No space left.*unchanged"):
                upgrade_file(path)
        assert path.read_bytes() == OLD.read_bytes()
        assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_what_is_corrupt_anywhere_is_refused_and_left(tmp_path: Path) -> None:
    content = OLD.read_bytes()
    path = tmp_path / "a.lbx"
    for at in (40, 300, 5000, len(content) - 300):  # header, manifest, code, constants
        broken = bytearray(content)
        broken[at] ^= 0x55
        path.write_bytes(broken)
        with pytest.raises(ExecutableError, match=r"a\.lbx: (corrupt|truncated|followed)"):
            upgrade_file(path)
        assert path.read_bytes() == broken
    for size in (0, 4, 100, 9000, len(content) - 1):
        path.write_bytes(content[:size])
        with pytest.raises(ExecutableError, match=r"a\.lbx: (truncated|not an \.lbx)"):
            upgrade_file(path)
        assert path.read_bytes() == content[:size]


@pytest.mark.parametrize(
    ("version", "advice"),
    [(OLDEST_VERSION - 1, "compile the model again"), (FORMAT_VERSION + 1, "install a newer Landbridge")],
)
def test_a_format_that_is_not_read_is_refused(version: int, advice: str, tmp_path: Path) -> None:
    path = copied(OLD, tmp_path)
    content = bytearray(path.read_bytes())
    content[8:12] = version.to_bytes(4, "little")
    path.write_bytes(content)
    legal = f"format version {version}, and this Landbridge reads {OLDEST_VERSION} to {FORMAT_VERSION}; {advice}"
    with pytest.raises(ExecutableError, match=legal):
        upgrade_file(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("key", [SEGMENTS, KERNELS])
def test_texts_that_say_nothing_are_refused_with_the_name_of_the_file(key: str, tmp_path: Path) -> None:
    path = tmp_path / "a.lbx"
    replace(programs.add_weights(), metadata={key: "no JSON"}).save(path)
    with pytest.raises(ExecutableError, match=r"a\.lbx: what the file says of its (segments|kernels) is no JSON"):
        upgrade_file(path)


@pytest.mark.filterwarnings("ignore::landbridge.FallbackWarning")
def test_calls_of_the_host_are_found_in_branches_between_segments_and_in_their_bodies() -> None:
    call = HostCall("host:own.Rank@1", (0,), {"module": "own"})
    plain = programs.executable({"x": (8,)}, {"y": (8,)}, (HostCall("first", (0,), {}), If(0, (call,), ())))
    assert host_calls(plain) == {"first": "", "host:own.Rank@1": "own"}
    cut = lb.compile(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {TEXTS["segments"]}'))
    assert host_calls(cut) == {"host:ai.onnx.NonZero@1": ""}
    nested = lb.compile(onnx.parser.parse_model(BRANCHES))
    assert host_calls(nested) == {"host:ai.onnx.NonZero@1": "", "host:ai.onnx.Unique@1": ""}


#: A branch that is a separate program, as its shapes differ, in which data decide a size.
BRANCHES = """<ir_version: 8, opset_import: ["": 17]>
g (float[n] x, bool c) => (int64[1, m] y) {
    i = NonZero(x)
    y = If (c) <
        then_branch = t () => (int64[1, a] p) { p = Neg(i) },
        else_branch = e () => (int64[1, b] q) {
            u = Unique(x)
            zero = Constant<value_float=0.0>()
            v = Greater(u, zero)
            w = Cast<to=1>(v)
            q = NonZero(w)
        }
    >
}"""


def test_weights_are_those_of_the_file(tmp_path: Path) -> None:
    path = copied(STORED / "8-weights.lbx", tmp_path)
    upgrade_file(path)
    before, after = lb.load(STORED / "8-weights.lbx").constants, lb.load(path).constants
    assert list(before) == list(after) and before
    for name, constant in before.items():
        np.testing.assert_array_equal(constant, after[name])
