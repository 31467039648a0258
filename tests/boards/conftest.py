"""The board that programs are run on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from wheel_models import cache_folder

from tests.boards import folder
from tests.boards.board import Board, ProgramRunner
from tests.selection.installed import missing, program

#: By Debian's name of an architecture: QEMU's program and its name of a CPU.
_EMULATED = {
    "arm64": ("qemu-aarch64", "cortex-a72"),
    "armhf": ("qemu-arm", "cortex-a9"),
    "riscv64": ("qemu-riscv64", folder.RISCV_VECTORS),
}


def _board(contents: folder.Contents, source: str) -> Board:
    emulator, cpu = _EMULATED[contents.architecture]
    qemu = program(emulator, "boards")
    try:
        return Board(qemu, folder.fetch(cache_folder() / "boards", contents), cpu)
    except (OSError, RuntimeError) as error:
        missing(f"a folder of {contents.architecture} programs of Debian {contents.release} ({error})", source)


@pytest.fixture(scope="session")
def board() -> Board:
    return _board(folder.BOOKWORM, "boards")


@pytest.fixture(
    scope="session",
    params=[folder.BOOKWORM, pytest.param(folder.FORKY, marks=pytest.mark.full)],
    ids=lambda c: c.python,
)
def each_python(request: pytest.FixtureRequest) -> Board:
    """Boards with the oldest and the newest Python that Debian has here."""
    # The newest is not expected: its release changes until it is one.
    return _board(request.param, "boards" if request.param is folder.BOOKWORM else "pythons")


@pytest.fixture(scope="session")
def armv7_board() -> Board:
    """A board of 32 bits, as PYNQ-Z2 and DE10-Nano have."""
    return _board(folder.ARMHF, "boards")


@pytest.fixture(scope="session")
def on_armv7(armv7_board: Board, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProgramRunner]:
    with closing(ProgramRunner(armv7_board, tmp_path_factory.mktemp("armv7"))) as runner:
        yield runner


@pytest.fixture(scope="session")
def riscv64_board() -> Board:
    """A board with vectors of 128 bits."""
    return _board(folder.RISCV64, "boards")


@pytest.fixture(scope="session")
def on_riscv64(riscv64_board: Board, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProgramRunner]:
    with closing(ProgramRunner(riscv64_board, tmp_path_factory.mktemp("riscv64"))) as runner:
        yield runner


@pytest.fixture(scope="session")
def on_board(board: Board, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProgramRunner]:
    runner = ProgramRunner(board, tmp_path_factory.mktemp("board"))
    yield runner
    runner.close()
