"""Landbridge with one line of its source changed, in a process of its own: what must notice is run there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

import landbridge

ROOT = Path(__file__).parents[2]
_PACKAGE = Path(landbridge.__file__).parent


class MutantDoesNotApplyError(Exception):
    """The text to change is not in the source, once."""


class MutatedRuntime:
    """Runs tests on changed copies of the package, one after another; a context that ends its helper process."""

    def __enter__(self) -> Self:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.testing.mutant_server"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.communicate(timeout=60)

    def run(self, module: str, before: str, after: str, tests: tuple[str, ...], directory: Path) -> tuple[int, str]:
        """Exit status and output of pytest on ``tests``, with ``before`` in file ``module`` replaced by ``after``.

        The changed package is made in ``directory``, of links to the real one. Raises MutantDoesNotApplyError.
        """
        text = (_PACKAGE / module).read_text(encoding="utf-8")
        if text.count(before) != 1:
            raise MutantDoesNotApplyError(f"{module} has {text.count(before)} times: {before}")
        _link(_PACKAGE, directory / "landbridge", Path(module).parts, text.replace(before, after))
        output = directory / "output.txt"
        assert self._server.stdin is not None and self._server.stdout is not None
        self._server.stdin.write(json.dumps([str(directory), tests, str(output)]) + "\n")
        self._server.stdin.flush()
        return int(self._server.stdout.readline()), output.read_text(encoding="utf-8")


def _link(real: Path, made: Path, parts: tuple[str, ...], text: str) -> None:
    """Make ``made`` as ``real``, but the file that ``parts`` lead to has ``text``."""
    made.mkdir()
    changed, *rest = parts
    for entry in real.iterdir():
        if entry.name != changed:
            (made / entry.name).symlink_to(entry)
    if rest:
        _link(real / changed, made / changed, tuple(rest), text)
    else:
        (made / changed).write_text(text, encoding="utf-8")
