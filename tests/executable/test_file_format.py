import json
import os
import struct
from dataclasses import replace
from math import inf
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from landbridge.errors import ExecutableError
from landbridge.executable import file_writer
from landbridge.executable.device_image import DeviceImage, Launch, LaunchSequence
from landbridge.executable.executable import Executable, file_parts, pieces_of_file
from landbridge.executable.file_reader import read_executable
from landbridge.executable.header import HEADER_BYTES, PAGE, Header, Section, unpack_header
from landbridge.executable.instructions import HostCall, If, ToVDevice
from landbridge.executable.parts import ModuleImage
from landbridge.files import output_file
from tests.executable.contents import contents
from tests.vm import programs

CONSTANTS = {
    "w": np.arange(64, dtype=np.float32),
    "empty": np.zeros((0, 3), np.int64),
    "scalar": np.array(7, np.uint8),
    "half": np.arange(6).reshape(2, 3).astype(ml_dtypes.bfloat16),
    "swapped": np.arange(5, dtype=">i4"),
    "columns": np.arange(12, dtype=np.int16).reshape(3, 4).T,
    "flags": np.array([True, False]),
}


LAUNCHES = LaunchSequence(
    3, (256,), (Launch("k_0", (0, 3), (4, 1, 1), (64, 1, 1)), Launch("k_1", (3, 2), (1, 2, 3), (8, 8, 1)))
)
DEVICE_IMAGE = DeviceImage("opencl-c", b"kernel void k_0() {}", {"k": LAUNCHES}, "-cl-std=CL1.2", ("cl_khr_fp64",))


def sample() -> Executable:
    program = (
        *programs.branches().main.instructions,
        If(
            5,
            (HostCall("nonzero", (0,), {"axis": 1, "name": "n", "deep": [1, 2.5, None, -inf]}),),
            (ToVDevice(0, 1, "t"),),
        ),
    )
    plain = programs.executable({"x": (8,), "c": (1,)}, {"y": (8,), "z": (8,)}, program, CONSTANTS)
    # A device image before one of machine code: their order is the numbering of Calls.
    return replace(plain, modules=(ModuleImage('{"kind":"opencl"}', DEVICE_IMAGE), *plain.modules))


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("lbx") / "sample.lbx"
    sample().save(path)
    return path


def test_everything_comes_back(saved):
    before, after = sample(), read_executable(saved, verify=True)
    assert after.functions == before.functions
    assert after.vdevices == before.vdevices
    assert contents(after.modules) == contents(before.modules)
    assert after.memory == before.memory
    assert after.metadata == before.metadata
    assert list(after.constants) == list(CONSTANTS)
    for name, array in CONSTANTS.items():
        loaded = after.constants[name]
        assert loaded.shape == array.shape
        assert loaded.dtype == array.dtype.newbyteorder("=")
        assert np.array_equal(loaded, array)


def test_constants_are_mapped_aligned_and_read_only(saved):
    constants = read_executable(saved).constants
    mapped = [line for line in Path("/proc/self/maps").read_text().splitlines() if str(saved) in line]
    assert mapped and all(line.split()[1].startswith("r--") for line in mapped)
    for array in constants.values():
        assert not array.flags.writeable and array.flags.c_contiguous
        assert array.__array_interface__["data"][0] % 256 == 0


def test_loading_reads_no_constant(tmp_path):
    weights = np.zeros(64 << 20, np.uint8)
    path = tmp_path / "big.lbx"
    programs.executable({"x": (1,)}, {"y": (1,)}, (), {"w": weights}).save(path)

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = resident()
    executable = read_executable(path)
    assert resident() - before < 8 << 20
    assert executable.constants["w"].nbytes == weights.nbytes


def test_saving_replaces_only_when_complete(tmp_path, monkeypatch):
    path = tmp_path / "model.lbx"
    programs.add_weights().save(path)
    good = path.read_bytes()
    monkeypatch.setattr(output_file.os, "fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        sample().save(path)
    assert path.read_bytes() == good
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.lbx"]


def test_saving_over_the_file_the_constants_are_mapped_from(tmp_path):
    path = tmp_path / "model.lbx"
    programs.add_weights().save(path)
    loaded = read_executable(path)
    loaded.save(path)
    assert np.array_equal(loaded.constants["w"], read_executable(path, verify=True).constants["w"])


def test_same_executable_same_bytes(tmp_path, saved):
    sample().save(tmp_path / "again.lbx")
    assert (tmp_path / "again.lbx").read_bytes() == saved.read_bytes()


@pytest.mark.parametrize("lasting", [True, False])
def test_constants_that_are_written_before_their_digests_are_known(tmp_path, lasting, monkeypatch):
    expected = b"".join(pieces_of_file(sample()))
    monkeypatch.setattr(file_writer, "_MUCH", 1)
    with (tmp_path / "early.lbx").open("wb") as file:
        file_parts(sample()).write(file, lasting=lasting)
    assert (tmp_path / "early.lbx").read_bytes() == expected
    read_executable(tmp_path / "early.lbx", verify=True).check_files()


def test_not_an_lbx(tmp_path):
    path = tmp_path / "x.lbx"
    for content in (b"", b"\x89LB", b"PK\x03\x04" + bytes(200), bytes(200)):
        path.write_bytes(content)
        with pytest.raises(ExecutableError, match=r"not an \.lbx file"):
            read_executable(path)


def test_other_version(tmp_path, saved):
    content = bytearray(saved.read_bytes())
    path = tmp_path / "x.lbx"
    struct.pack_into("<I", content, 8, 7)
    path.write_bytes(content)
    with pytest.raises(ExecutableError, match=r"format version 7, .*reads 8 to .*compile the model again"):
        read_executable(path)
    struct.pack_into("<I", content, 8, 77)
    path.write_bytes(content)
    with pytest.raises(ExecutableError, match=r"format version 77.*newer Landbridge"):
        read_executable(path)


def test_corrupt_constants_are_found_on_demand(tmp_path, saved):
    content = bytearray(saved.read_bytes())
    content[unpack_header(bytes(content), len(content)).sections[-1].offset] ^= 1
    path = tmp_path / "x.lbx"
    path.write_bytes(content)
    read_executable(path)
    with pytest.raises(ExecutableError, match="corrupt constants"):
        read_executable(path, verify=True)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_corruption_or_truncation_is_found(tmp_path, saved, data):
    content = bytearray(saved.read_bytes())
    if data.draw(st.booleans(), label="truncate"):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    else:
        for _ in range(data.draw(st.integers(1, 4))):
            at = data.draw(st.integers(0, len(content) - 1) | st.integers(0, HEADER_BYTES))
            content[at] ^= data.draw(st.integers(1, 255))
    if bytes(content) == saved.read_bytes():
        return
    path = tmp_path / "x.lbx"
    path.write_bytes(content)
    with pytest.raises(ExecutableError):
        read_executable(path, verify=True)


def resigned(content: bytes, manifest: object, instructions: object | None = None) -> bytes:
    """The file with another manifest (and instructions), its digest and offsets made right again."""
    _, old_instructions, code, constants = unpack_header(content, len(content)).sections
    front = json.dumps(manifest).encode()
    program = content[old_instructions.offset : old_instructions.end]
    if instructions is not None:
        program = json.dumps(instructions).encode()
    first = Section(HEADER_BYTES, len(front))
    second = Section(first.end, len(program))
    third = Section(-(-second.end // PAGE) * PAGE, code.size)
    fourth = Section(-(-third.end // PAGE) * PAGE, constants.size)
    body = front + program + bytes(third.offset - second.end) + content[code.offset : code.end]
    body += bytes(fourth.offset - third.end)
    header = Header((first, second, third, fourth))
    return Header(header.sections, header.digest([body])).pack() + body + content[constants.offset :]


def parts(content: bytes) -> tuple[dict, list]:
    manifest, instructions, _, _ = unpack_header(content, len(content)).sections
    return (
        json.loads(content[manifest.offset : manifest.end]),
        json.loads(content[instructions.offset : instructions.end]),
    )


def leaves(value, path=()):
    """Every (path, leaf) of JSON data, containers that are empty included."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    inner = [leaf for key, item in items for leaf in leaves(item, (*path, key))]
    return inner or [(path, value)]


def replaced(value, path, leaf):
    if not path:
        return leaf
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], leaf)
    return copy


JUNK = st.one_of(
    st.integers(-(1 << 70), 1 << 70),
    st.integers(0, 300),
    st.none(),
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.just([]),
    st.just({}),
    st.lists(st.integers(0, 1 << 63), max_size=70),
)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_junk_under_a_right_digest_is_refused_or_harmless(tmp_path, saved, data):
    content = saved.read_bytes()
    manifest, instructions = parts(content)
    which = data.draw(st.sampled_from(["manifest", "instructions"]))
    target = manifest if which == "manifest" else instructions
    path, _ = data.draw(st.sampled_from(leaves(target)))
    path = path[: data.draw(st.integers(0, len(path)))]
    changed = replaced(target, path, data.draw(JUNK))
    new = resigned(content, changed) if which == "manifest" else resigned(content, manifest, changed)
    file = tmp_path / "x.lbx"
    file.write_bytes(new)
    try:
        executable = read_executable(file)
    except ExecutableError:
        return
    for array in executable.constants.values():
        array.tobytes()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("constants", 0, "offset"), 1 << 62),
        (("constants", 0, "offset"), 3),
        (("constants", 0, "shape"), [1 << 40]),
        (("constants", 0, "shape"), [-1]),
        (("constants", 0, "dtype"), "float99"),
        (("images", 0, "offset"), 1 << 40),
        (("images", 0, "size"), 1 << 40),
        (("images", 0, "symbols"), {"f": 1 << 40}),
        (("images", 0, "relocations"), [1 << 40]),
        (("images", 0, "module"), 2),
        (("images", 0, "module"), 0),
        (("device_images", 0, "offset"), 1 << 40),
        (("device_images", 0, "format"), 7),
        (("device_images", 0, "functions", "k", "launches", 0, "args"), [4]),
        (("device_images", 0, "functions", "k", "launches", 0, "grid"), [4, 1]),
        (("device_images", 0, "functions", "k", "launches", 0, "block"), [0, 1, 1]),
        (("functions", 0, "inputs", 0, "shape"), ["8"]),
    ],
)
def test_offsets_and_sizes_are_checked(tmp_path, saved, path, value):
    content = saved.read_bytes()
    manifest, _ = parts(content)
    file = tmp_path / "x.lbx"
    file.write_bytes(resigned(content, replaced(manifest, path, value)))
    with pytest.raises(ExecutableError):
        read_executable(file)


@pytest.mark.parametrize(
    "program",
    [
        [["explode", 1]],
        [["to_vdevice"]],
        [["to_vdevice", -1, 1, ""]],
        [["to_vdevice", 1, 2, 3]],
        [[]],
        ["to_vdevice"],
        [["call", 0, 1, [], 1, "", 0]],
    ],
)
def test_instructions_are_checked(tmp_path, saved, program):
    content = saved.read_bytes()
    manifest, _ = parts(content)
    file = tmp_path / "x.lbx"
    file.write_bytes(resigned(content, manifest, [program]))
    with pytest.raises(ExecutableError):
        read_executable(file)


def test_an_executable_equals_itself_alone():
    one, other = sample(), sample()
    assert one == one and one != other
    assert {one: "one", other: "other"}[one] == "one"
