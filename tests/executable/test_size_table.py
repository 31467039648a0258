"""The table of a file's Sizes: each different one once, read as it was, and nothing else taken for one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import landbridge as lb
from landbridge.errors import ExecutableError
from landbridge.executable.executable import file_parts
from landbridge.executable.file_reader import format_version
from landbridge.executable.header import HEADER_BYTES, unpack_header
from landbridge.executable.manifest import SIZES
from landbridge.executable.size_table import SizeTable, read_size_table
from landbridge.sizes.size import Size, clamped, dimension, largest

W = dimension("W", 32, 2560, 8, 320)
H = dimension("H", 1, None)
OPEN = Path(__file__).with_name("stored") / "9-open.lbx"


def sizes() -> list[Size]:
    quotient = (W // 16 + H) // (H + 3)
    found = [
        W,
        W // 8 * 3 - 5,
        quotient * quotient - W * H,
        largest(0, H - W + 7) // 5,
        clamped(W * W * H - 4, 1, 9) + clamped(H - 2, 0),
        largest(quotient, W // 24),
    ]
    assert all(isinstance(each, Size) for each in found)
    return found  # type: ignore[return-value]


def written(table: SizeTable) -> Any:
    return json.loads(json.dumps(table.to_json()))


def test_sizes_are_read_as_they_were_written() -> None:
    table = SizeTable()
    texts = [table.number(each) for each in sizes()]
    assert texts == [table.number(each) for each in sizes()]
    read = read_size_table(written(table))
    assert [read[text] for text in texts] == sizes()
    values = {"W": 64, "H": 5}
    assert [read[text].at(values) for text in texts] == [each.at(values) for each in sizes()]


def test_a_part_of_several_sizes_is_written_once() -> None:
    table = SizeTable()
    shared = (H + 3) // 7
    for number in range(50):
        table.number(shared * (number + 1) + number)  # type: ignore[arg-type]
    atoms, found = written(table)
    assert len(atoms) == 2 and len(found) == 50


@pytest.mark.parametrize(
    "table",
    [
        None,
        [],
        [[], [], []],
        [[], [[[3]]]],  # no dimension
        [[], [[]]],
        [[["W", 1, 9, 1, None]], [[[1, 1, 1]]]],  # atoms that are not there
        [[["W", 1, 9, 1, None]], [[[1, -1, 1]]]],
        [[["W", 1, 9, 1, None]], [[[1, 0]]]],
        [[["W", 1, 9, 1, None]], [[[0, 0, 1]]]],
        [[["W", 1, 9, 1, None]], [[[1, 0, 0]]]],
        [[["W", 1, 9, 1, None]], [[[1, 0, 10**6]]]],
        [[["W", 1, 9, 1, None]], [[[1 << 64, 0, 1]]]],
        [[["W", 1, 9, 1, None]], [[[1.0, 0, 1]]]],
        [[["W", 1, 9, 1, None]], [[[True, 0, 1]]]],
        [[["W", 9, 1, 1, None]], []],
        [[["W", 1, 9, 0, None]], []],
        [[["W", 1, 9, 1, 10]], []],
        [[["W", 1, 9, 1]], []],
        [[["W", "1", 9, 1, None]], []],
        [[["H", 0, 9, 1, None], [0, [[1, 0, 1]], [[1, 0, 1]]]], []],  # a divisor that may be 0
        [[["H", 0, 9, 1, None], [0, [[1, 0, 1]], []]], []],
        [[["H", 0, 9, 1, None], [0, [[1, 0, 1]], [[-2]]]], []],
        [[["H", 0, 9, 1, None], [1, [[1, 1, 1]]]], []],  # of itself
        [[["H", 0, 9, 1, None], [2, [[1, 0, 1]], 0]], []],
        [[["H", 0, 9, 1, None], [3, [[1, 0, 1]]]], []],
        [[["H", 0, 9, 1, None], *([1, [[1, number, 1]]] for number in range(300))], []],  # too deep
    ],
)
def test_what_is_no_table_is_refused(table: Any) -> None:
    with pytest.raises(ExecutableError, match="corrupt table of sizes"):
        read_size_table(table)


def test_a_file_has_each_size_once(tmp_path: Path) -> None:
    """Files before had the text of a Size wherever one stands; both give the same program."""
    before = lb.load(OPEN)
    before.save(tmp_path / "now.lbx")
    now = lb.load(tmp_path / "now.lbx")
    assert format_version(OPEN) == 9 and format_version(tmp_path / "now.lbx") == 13
    assert now.functions == before.functions and now.memory == before.memory
    content = file_parts(before).front()
    manifest = unpack_header(content[:HEADER_BYTES], (tmp_path / "now.lbx").stat().st_size).sections[0]
    _, found = json.loads(content[manifest.offset : manifest.end])[SIZES]
    assert len(found) == len({json.dumps(each) for each in found})


def test_a_number_that_the_table_has_not_is_refused(tmp_path: Path) -> None:
    parts = file_parts(lb.load(OPEN))
    parts._manifest[SIZES][1].pop()
    with (tmp_path / "cut.lbx").open("wb") as file:
        parts.write(file, lasting=False)
    with pytest.raises(ExecutableError, match="expected a size"):
        lb.load(tmp_path / "cut.lbx")
