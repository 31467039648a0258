"""The board that programs are run on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from wheel_models import cache_folder

from tests.boards import folder
from tests.boards.board import Board, ProgramRunner
from tests.selection.installed import missing, program


def _board(contents: folder.Contents, source: str) -> Board:
    qemu = program("qemu-aarch64", "boards")
    try:
        return Board(qemu, folder.fetch(cache_folder() / "boards", contents))
    except (OSError, RuntimeError) as error:
        missing(f"a folder of AArch64 programs of Debian {contents.release} ({error})", source)


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
def on_board(board: Board, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProgramRunner]:
    runner = ProgramRunner(board, tmp_path_factory.mktemp("board"))
    yield runner
    runner.close()
