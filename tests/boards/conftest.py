"""The board that programs are run on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from wheel_models import cache_folder

from tests.boards import folder
from tests.boards.board import Board, ProgramRunner
from tests.selection.installed import missing, program


@pytest.fixture(scope="session")
def board() -> Board:
    qemu = program("qemu-aarch64", "boards")
    try:
        return Board(qemu, folder.fetch(cache_folder() / "boards"))
    except (OSError, RuntimeError) as error:
        missing(f"a folder of AArch64 programs ({error})", "boards")


@pytest.fixture(scope="session")
def on_board(board: Board, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProgramRunner]:
    runner = ProgramRunner(board, tmp_path_factory.mktemp("board"))
    yield runner
    runner.close()
