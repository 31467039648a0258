"""Landbridge with one place of its source changed, in a process of its own: what must notice is run there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

import landbridge
from tests.testing.mutations import mutated
from tests.testing.runtime_sentences import Sentence

ROOT = Path(__file__).parents[2]
_PACKAGE = Path(landbridge.__file__).parent


def mutated_source(sentence: Sentence) -> str:
    """The file that ``sentence`` names, with its change. Raises MutantDoesNotApplyError."""
    source = (_PACKAGE / sentence.module).read_text(encoding="utf-8")
    return mutated(source, sentence.function, sentence.change)


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

    def run(self, sentence: Sentence, directory: Path) -> tuple[int, str]:
        """Exit status and output of pytest on the tests of ``sentence``, with its change made.

        The changed package is made in ``directory``, of links to the real one. Raises MutantDoesNotApplyError.
        """
        _link(_PACKAGE, directory / "landbridge", Path(sentence.module).parts, mutated_source(sentence))
        output = directory / "output.txt"
        assert self._server.stdin is not None and self._server.stdout is not None
        self._server.stdin.write(json.dumps([str(directory), sentence.tests, str(output)]) + "\n")
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
