"""Each sentence that the runtime keeps has tests that fail when a change of the runtime breaks it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.testing.mutated_runtime import MutatedRuntime, mutated_source
from tests.testing.runtime_sentences import SENTENCES, Sentence

_FAILED = 1  # pytest's exit status when tests ran and some failed


@pytest.fixture(scope="module")
def mutated() -> Iterator[MutatedRuntime]:
    with MutatedRuntime() as runtime:
        yield runtime


def test_every_change_applies() -> None:
    for sentence in SENTENCES:
        source = mutated_source(sentence)
        if sentence.module.endswith(".py"):
            compile(source, sentence.module, "exec")


def _case(sentence: Sentence) -> object:
    return pytest.param(sentence, id=sentence.text, marks=[pytest.mark.full] * sentence.hangs)


@pytest.mark.sample(3)
@pytest.mark.parametrize("sentence", [_case(sentence) for sentence in SENTENCES])
def test_a_broken_runtime_is_noticed(sentence: Sentence, mutated: MutatedRuntime, tmp_path: Path) -> None:
    status, output = mutated.run(sentence, tmp_path)
    assert status == _FAILED, f"{' '.join(sentence.tests)} with: {sentence.breaks}\n{output}"
