"""The table of docs/device-contract.md: sentence, test, mutant. As a program, it writes the table anew."""

from __future__ import annotations

from pathlib import Path

from landbridge.testing.conformance.run import sentences
from tests.testing.mutants import RUNTIME, Correct, device_mutants
from tests.testing.nd_mutants import ROWS_RUNTIME, CorrectRows

DOCUMENT = Path(__file__).parents[2] / "docs" / "device-contract.md"
_BEGIN, _END = "<!-- table: begin -->\n", "<!-- table: end -->\n"


def contract_table() -> str:
    """One row for each test of the conformance suite."""
    mutants: dict[str, list[str]] = {}
    for mutant in (*device_mutants(Correct), *device_mutants(CorrectRows)):
        mutants.setdefault(mutant.caught_by, []).append((mutant.__doc__ or "").strip())
    for broken in (*RUNTIME, *ROWS_RUNTIME):
        mutants.setdefault(broken.caught_by, []).append(f"{broken.what} (runtime)")
    rows = ["| sentence | test | what the mutant breaks |", "| --- | --- | --- |"]
    for name, sentence in sentences().items():
        rows.append(f"| {_cell(sentence)} | `{name}` | {_cell(' '.join(mutants.get(name, ['none'])))} |")
    return "\n".join(rows) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _write() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    before, rest = text.split(_BEGIN)
    _, after = rest.split(_END)
    DOCUMENT.write_text(f"{before}{_BEGIN}{contract_table()}{_END}{after}", encoding="utf-8")


if __name__ == "__main__":
    _write()
