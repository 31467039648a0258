"""LLVM's facts of this processor are asked once for all processes of a cache folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from landbridge.targets import known_processor as known
from landbridge.targets.known_processor import ProcessorFacts, known_processor

FACTS = ProcessorFacts("x86_64-unknown-linux-gnu", "znver4", ("+avx2", "-amx-tile"))
CPUINFO = (
    "processor\t: 0\nmodel name\t: One\nflags\t\t: fpu avx2\ncpu MHz\t: 1.5\n\nprocessor\t: 1\nmodel name\t: One\n"
)


class Asked:
    """Counts how often LLVM is asked."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> ProcessorFacts:
        self.times += 1
        return FACTS


@pytest.fixture
def cpuinfo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "cpuinfo"
    file.write_text(CPUINFO)
    monkeypatch.setattr(known, "_CPUINFO", file)
    monkeypatch.setenv("LANDBRIDGE_CACHE", str(tmp_path / "cache"))
    return file


def test_the_second_process_finds_them(cpuinfo: Path) -> None:
    asked = Asked()
    assert [known_processor(asked) for _ in range(2)] == [FACTS, FACTS] and asked.times == 1
    cpuinfo.write_text(CPUINFO.replace("1.5", "3.5"))  # its clock is no other processor
    assert known_processor(asked) == FACTS and asked.times == 1


@pytest.mark.parametrize("change", [("One", "Two"), ("fpu avx2", "fpu")])
def test_another_processor_is_asked_for(cpuinfo: Path, change: tuple[str, str]) -> None:
    asked = Asked()
    known_processor(asked)
    cpuinfo.write_text(CPUINFO.replace(*change))
    known_processor(asked)
    assert asked.times == 2


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '["a", "b", "cd"]', '["a", "b", [1]]', '["a", 1, ["c"]]', "[" * 99]
)
def test_a_damaged_file_is_replaced(cpuinfo: Path, tmp_path: Path, content: str) -> None:
    asked = Asked()
    known_processor(asked)
    (file,) = (tmp_path / "cache").glob("*.processor")
    file.write_text(content)
    assert [known_processor(asked) for _ in range(2)] == [FACTS, FACTS] and asked.times == 2


def test_nothing_is_kept_without_a_folder_or_a_description(cpuinfo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked()
    cpuinfo.unlink()
    known_processor(asked)
    cpuinfo.write_text("processor: 0\n")
    known_processor(asked)
    monkeypatch.setenv("LANDBRIDGE_CACHE", "0")
    cpuinfo.write_text(CPUINFO)
    assert known_processor(asked) == FACTS and asked.times == 3
