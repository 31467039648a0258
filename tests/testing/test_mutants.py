"""The conformance suite notices each mutant, with the test that its sentence is for; and the table says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from landbridge.codegen import registry as codegens
from landbridge.device import registry
from landbridge.device.api import DeviceAPI
from landbridge.targets import registry as targets
from landbridge.testing.conformance.base import ConformanceCase
from landbridge.testing.conformance.run import Result, sentences
from tests.testing.acquisition_mutants import CorrectOnDemand
from tests.testing.all_mutants import RUNTIME, Correct, RuntimeMutant, device_mutants
from tests.testing.c_kernels import KIND, generate
from tests.testing.contract_table import DOCUMENT, contract_table, runtime_table
from tests.testing.honest_devices import HONEST
from tests.testing.nd_mutants import ROWS_RUNTIME, CorrectRows
from tests.testing.row_launch_mutants import Records
from tests.testing.whole_suite import run_conformance

MUTANTS = [*device_mutants(Correct), *device_mutants(CorrectRows), *device_mutants(CorrectOnDemand)]


@pytest.fixture
def admit(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """Makes a device known without the checks of the registry, some of which a mutant would fail."""

    monkeypatch.setitem(targets._kinds._known, KIND.name, KIND)
    monkeypatch.setitem(targets._kinds._registered, KIND.name, "tests")
    monkeypatch.setitem(codegens._codegens._known, KIND.name, generate)
    monkeypatch.setitem(codegens._codegens._registered, KIND.name, "tests")
    registry.device("cpu")  # which tests copy to: what they find of it now stays known after them

    def known_as_mutant(api: DeviceAPI) -> None:
        monkeypatch.setitem(registry._plugins._known, "mutant", api)
        monkeypatch.setattr(registry, "_types", {**registry._types, api.device_type or 5000: "mutant"})
        monkeypatch.setattr(registry, "_devices", {})

    yield known_as_mutant


def failures(name: str) -> list[Result]:
    return [result for result in run_conformance("mutant", (name,), own_process=True) if result.outcome == "fail"]


@pytest.mark.sample(1)
@pytest.mark.parametrize("device", HONEST)
def test_honest_devices_conform(device: type[DeviceAPI], admit) -> None:
    admit(device())
    assert [r for r in run_conformance("mutant", own_process=True) if r.outcome == "fail"] == []


@pytest.mark.parametrize("device", [Correct, CorrectRows, Records, CorrectOnDemand])
def test_the_devices_that_are_mutated_conform(device: type[DeviceAPI], admit) -> None:
    admit(device())
    assert [r for r in run_conformance("mutant", own_process=True) if r.outcome == "fail"] == []


def test_launches_in_rows_conform_when_they_are_sanitized(admit) -> None:
    admit(Records())
    names = ("test_launch_in_rows", "test_launch_within_rows", "test_recorded_launches_in_rows", "test_positions")
    results = run_conformance("sanitize(mutant)", names)
    assert [result.outcome for result in results] == ["pass"] * 4, results


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.__name__)
def test_a_broken_device_is_noticed(
    mutant: type[Correct | CorrectRows | CorrectOnDemand], admit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ConformanceCase, "patience", 1.0)  # the simulator is done in milliseconds
    admit(mutant())
    assert failures(mutant.caught_by), f"{mutant.caught_by} passes although: {mutant.__doc__}"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("mutant", [*RUNTIME, *ROWS_RUNTIME], ids=lambda m: m.caught_by)
def test_a_broken_runtime_is_noticed(mutant: RuntimeMutant, admit) -> None:
    admit(CorrectRows() if mutant in ROWS_RUNTIME else Correct())
    assert not failures(mutant.caught_by)
    with pytest.MonkeyPatch.context() as patch:
        mutant.apply(patch)
        found = failures(mutant.caught_by)
    assert found, f"{mutant.caught_by} passes although: {mutant.what}"


def test_every_sentence_has_a_mutant() -> None:
    mutants = (*MUTANTS, *RUNTIME, *ROWS_RUNTIME)
    caught = {mutant.caught_by for mutant in mutants}
    assert sorted(sentences()) == sorted(caught)


def test_the_table_is_true() -> None:
    text = Path(DOCUMENT).read_text(encoding="utf-8")
    assert contract_table() in text and runtime_table() in text, (
        "docs/device-contract.md: run python -m tests.testing.contract_table"
    )
