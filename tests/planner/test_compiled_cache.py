"""numba's cache of the search: rebuilt when it is damaged, done without when it cannot be written."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from landbridge.planner.exact import compiled

PROGRAM = """
import sys
if sys.argv[1:] == ["full"]:
    import os
    def full(*_): raise OSError(28, "No space left on device")
    os.replace = full
from landbridge.planner import Buffer
from landbridge.planner.conflicts import conflicts
from landbridge.planner.exact import kernel
from landbridge.planner.exact.compiled import compiled_search
from landbridge.planner.exact.problem import scaled
from landbridge.planner.exact.orders import ORDERS, ranks
from landbridge.planner.exact.racer import Racer
search = compiled_search()
buffers = [Buffer(i, 1 + i % 5, 1, i % 7, i % 7 + 1 + i % 3) for i in range(12)]
found = scaled(buffers, conflicts(buffers))
ends = []
for run in (kernel.search, search):
    racer = Racer(found.problem, ranks(found.problem, ORDERS[0]), run, table_bits=8)
    racer.aim(30 // found.unit, [(30 - buffers[i].size) // found.unit for i in found.members])
    ends.append((racer.search(50), racer.offsets()))
assert ends[0] == ends[1]
print(len(search.signatures), sum(search.stats.cache_hits.values()), sum(search.stats.cache_misses.values()))
"""


def searched(folder: Path, *arguments: str) -> list[int]:
    """Signatures compiled, cache hits and misses of a new process that keeps machine code in ``folder``."""
    child = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder)},
        capture_output=True,
        text=True,
    )
    assert child.returncode == 0, child.stderr
    return list(map(int, child.stdout.split()))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A cache as it is made, by relative path."""
    folder = tmp_path_factory.mktemp("numba")
    assert searched(folder) == [1, 0, 1]
    assert searched(folder) == [1, 1, 0]
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


def flipped(content: bytes) -> bytes:
    at = random.Random(0).randrange(len(content))
    return content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :]


@pytest.mark.full
@pytest.mark.parametrize(
    ("suffix", "damage"),
    [
        (".nbi", lambda content: content[: len(content) // 2]),
        (".nbi", lambda content: b"no pickle at all"),
        (".nbc", flipped),
        (".sha256", lambda content: b""),
    ],
    ids=["index cut", "index foreign", "code flipped", "seal empty"],
)
def test_a_damaged_cache_is_made_anew(
    tmp_path: Path, filled: dict[str, bytes], suffix: str, damage: Callable[[bytes], bytes]
) -> None:
    assert any(name.endswith(suffix) for name in filled)
    for name, content in filled.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(damage(content) if name.endswith(suffix) else content)
    assert searched(tmp_path) == [1, 0, 1]


@pytest.mark.full
def test_a_disk_that_is_full_costs_only_the_cache(tmp_path: Path) -> None:
    assert searched(tmp_path, "full")[0] == 1


@pytest.mark.full
def test_a_folder_that_is_none_costs_only_the_cache(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert searched(tmp_path / "file")[0] == 1


def cached(folder: Path) -> list[Path]:
    """Files that are called as numba's are, sealed."""
    python = f"py{sys.version_info[0]}{sys.version_info[1]}"
    files = [folder / f"kernel.search-38.{python}{end}" for end in (".nbi", ".1.nbc")]
    for file in files:
        file.write_bytes(file.name.encode())
    compiled._seal(folder)
    return files


@pytest.mark.parametrize("damage", ["none", "index", "code", "missing", "seal", "no seal", "sources"])
def test_what_is_not_as_it_was_sealed_is_removed(tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    index, code = cached(tmp_path)
    other = tmp_path / "kernel.search-38.py27.nbi"
    other.write_text("of another Python")
    match damage:
        case "index":
            index.write_bytes(flipped(index.read_bytes()))
        case "code":
            code.write_bytes(code.read_bytes()[:-1])
        case "missing":
            code.unlink()
        case "seal":
            compiled._seal_of(tmp_path).write_bytes(b"\xff\xfe")
        case "no seal":
            compiled._seal_of(tmp_path).unlink()
        case "sources":
            changed = tmp_path / "state.py"
            changed.write_text("FRAME = 13")
            monkeypatch.setattr(compiled.state, "__file__", str(changed))
    compiled._remove_unless_sealed(tmp_path)
    assert other.exists()
    assert (index.exists(), code.exists()) == ((True, True) if damage == "none" else (False, False))


@pytest.mark.parametrize("compiled_before", [False, True])
def test_numba_that_fails_over_its_cache_is_requested_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiled_before: bool
) -> None:
    import numba

    requested: list[bool] = []

    def njit(cache: bool = False, **_: object) -> Callable[[object], object]:
        requested.append(cache)
        dispatcher = SimpleNamespace(
            cached=cache,
            signatures=["one"] if compiled_before else [],
            stats=SimpleNamespace(cache_path=str(tmp_path / "nowhere")),
            compile=lambda _: (_ for _ in ()).throw(EOFError("Ran out of input")),
        )
        return lambda _: dispatcher

    monkeypatch.setattr(numba, "njit", njit)
    found = compiled.compiled_search.__wrapped__()
    assert requested == ([True] if compiled_before else [True, False])
    assert found.cached == compiled_before
