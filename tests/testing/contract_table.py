"""The tables of docs/device-contract.md: sentence, test, mutant; callers. As a program, it writes them anew."""

from __future__ import annotations

from pathlib import Path

from landbridge.testing.conformance.run import sentences
from tests.testing.acquisition_mutants import CorrectOnDemand
from tests.testing.all_mutants import RUNTIME, Correct, device_mutants
from tests.testing.caller_table import caller_table
from tests.testing.nd_mutants import ROWS_RUNTIME, CorrectRows
from tests.testing.runtime_sentences import SENTENCES

DOCUMENT = Path(__file__).parents[2] / "docs" / "device-contract.md"
_HEAD = ["| sentence | test | what the mutant breaks |", "| --- | --- | --- |"]


def contract_table() -> str:
    """One row for each test of the conformance suite."""
    mutants: dict[str, list[str]] = {}
    for mutant in (*device_mutants(Correct), *device_mutants(CorrectRows), *device_mutants(CorrectOnDemand)):
        mutants.setdefault(mutant.caught_by, []).append((mutant.__doc__ or "").strip())
    for broken in (*RUNTIME, *ROWS_RUNTIME):
        mutants.setdefault(broken.caught_by, []).append(f"{broken.subject} (runtime)")
    rows = list(_HEAD)
    for name, sentence in sentences().items():
        rows.append(f"| {_cell(sentence)} | `{name}` | {_cell(' '.join(mutants.get(name, ['none'])))} |")
    return "\n".join(rows) + "\n"


def runtime_table() -> str:
    """One row for each sentence that the runtime keeps; tests without their folder."""
    rows = list(_HEAD)
    for sentence in SENTENCES:
        tests = " ".join(f"`{test.removeprefix('tests/')}`" for test in sentence.tests)
        rows.append(f"| {_cell(sentence.text)} | {tests} | {_cell(sentence.breaks)} |")
    return "\n".join(rows) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _write() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    tables = {"table": contract_table(), "runtime table": runtime_table(), "caller table": caller_table()}
    for name, table in tables.items():
        begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
        before, rest = text.split(begin)
        text = f"{before}{begin}{table}{end}{rest.split(end)[1]}"
    DOCUMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    _write()
