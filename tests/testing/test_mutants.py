"""The conformance suite notices each mutant, with the test that its sentence is for; and the table says so.

A mutant may write to memory that is no longer its own, so each is tried in a process of many that is not this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import pytest

from landbridge.device.api import DeviceAPI
from landbridge.testing.conformance.base import ConformanceCase
from landbridge.testing.conformance.run import Result, sentences
from tests.testing.acquisition_mutants import CorrectOnDemand
from tests.testing.admitted import admitted
from tests.testing.all_mutants import RUNTIME, Correct, device_mutants
from tests.testing.contract_table import DOCUMENT, contract_table, runtime_table
from tests.testing.honest_devices import HONEST
from tests.testing.nd_mutants import ROWS_RUNTIME, CorrectRows
from tests.testing.row_launch_mutants import Records
from tests.testing.whole_suite import run_conformance
from tests.witnesses.guard_pages import ProcessEnded, in_child

R = TypeVar("R")

MUTANTS = [*device_mutants(Correct), *device_mutants(CorrectRows), *device_mutants(CorrectOnDemand)]


RUNTIME_MUTANTS = [*RUNTIME, *ROWS_RUNTIME]


@pytest.fixture
def admit() -> Iterator[Callable[[DeviceAPI], None]]:
    """Makes a device known as ``admitted`` does, for the rest of a test."""
    with ExitStack() as stack:
        yield lambda api: stack.enter_context(admitted(api))


def failures(name: str) -> list[Result]:
    return [result for result in run_conformance("mutant", (name,), separate_process=True) if result.outcome == "fail"]


def fails_with_device(number: int) -> bool:
    """Whether the sentence that one of ``MUTANTS`` is for fails."""
    with pytest.MonkeyPatch.context() as patch, admitted(MUTANTS[number]()):
        patch.setattr(ConformanceCase, "patience", 1.0)  # the simulator is done in milliseconds
        return bool(failures(MUTANTS[number].caught_by))


def fails_with_runtime(number: int) -> tuple[bool, bool]:
    """Whether the sentence that one of ``RUNTIME_MUTANTS`` is for fails before the runtime is changed, and then."""
    mutant = RUNTIME_MUTANTS[number]
    with admitted(CorrectRows() if mutant in ROWS_RUNTIME else Correct()):
        before = bool(failures(mutant.caught_by))
        with pytest.MonkeyPatch.context() as patch:
            mutant.apply(patch)
            return before, bool(failures(mutant.caught_by))


def elsewhere(check: Callable[[int], R], number: int) -> R:
    """``check(number)`` of another process; of a new one where one ended, which may be another mutant's doing."""
    try:
        return in_child(check, number)
    except ProcessEnded:
        return in_child(check, number)


@pytest.mark.sample(1)
@pytest.mark.parametrize("device", HONEST)
def test_honest_devices_conform(device: type[DeviceAPI], admit) -> None:
    admit(device())
    assert [r for r in run_conformance("mutant", separate_process=True) if r.outcome == "fail"] == []


@pytest.mark.sample(2)
@pytest.mark.parametrize("device", [Correct, CorrectRows, Records, CorrectOnDemand])
def test_the_devices_that_are_mutated_conform(device: type[DeviceAPI], admit) -> None:
    admit(device())
    assert [r for r in run_conformance("mutant", separate_process=True) if r.outcome == "fail"] == []


def test_launches_in_rows_conform_when_they_are_sanitized(admit) -> None:
    admit(Records())
    names = ("test_launch_in_rows", "test_launch_within_rows", "test_recorded_launches_in_rows", "test_positions")
    results = run_conformance("sanitize(mutant)", names)
    assert [result.outcome for result in results] == ["pass"] * 4, results


@pytest.mark.sample(140)
@pytest.mark.parametrize("number", range(len(MUTANTS)), ids=lambda n: MUTANTS[n].__name__)
def test_a_broken_device_is_noticed(number: int) -> None:
    mutant = MUTANTS[number]
    assert elsewhere(fails_with_device, number), f"{mutant.caught_by} passes although: {mutant.__doc__}"


@pytest.mark.parametrize("number", range(len(RUNTIME_MUTANTS)), ids=lambda n: RUNTIME_MUTANTS[n].caught_by)
def test_a_broken_runtime_is_noticed(number: int) -> None:
    mutant = RUNTIME_MUTANTS[number]
    before, then = elsewhere(fails_with_runtime, number)
    assert not before
    assert then, f"{mutant.caught_by} passes although: {mutant.subject}"


def test_every_sentence_has_a_mutant() -> None:
    mutants = (*MUTANTS, *RUNTIME, *ROWS_RUNTIME)
    caught = {mutant.caught_by for mutant in mutants}
    assert sorted(sentences()) == sorted(caught)


def test_the_table_is_true() -> None:
    text = Path(DOCUMENT).read_text(encoding="utf-8")
    assert contract_table() in text and runtime_table() in text, (
        "docs/device-contract.md: run python -m tests.testing.contract_table"
    )
