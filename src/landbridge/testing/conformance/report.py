"""The results of the suite on one device, as JSON and as Markdown."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, get_args

from landbridge.errors import InputError
from landbridge.records import record
from landbridge.testing.conformance.run import Outcome, Result

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


@record(frozen=True)
class Report:
    """The ``results`` of a device and its ``facts``, as ``device_facts`` returns them."""

    facts: Mapping[str, Any]
    results: Sequence[Result]

    @property
    def counts(self) -> dict[Outcome, int]:
        """Returns the number of tests by outcome."""
        return {outcome: sum(r.outcome == outcome for r in self.results) for outcome in OUTCOMES}

    def values(self) -> dict[str, Any]:
        """Returns the report as JSON data."""
        return dict(self.facts) | dict(self.counts) | {"results": [asdict(result) for result in self.results]}

    def text(self, suffix: str) -> str:
        """Returns the report as text of files that end in ``suffix``: ".md" or ".json"; raises InputError for
        others.
        """
        if suffix == ".json":
            return json.dumps(self.values(), indent=2, default=str) + "\n"
        check_suffix(suffix)
        return self._markdown()

    def _markdown(self) -> str:
        name, counts = self.facts["device"], self.counts
        attributes = self.facts["attributes"].items()
        scopes = self.facts["scopes"].items()
        sections = [
            f"# Conformance of `{name}`",
            f"{counts['pass']} sentences kept, {counts['fail']} broken, {counts['skip']} do not apply.",
            _table(("attribute", "value"), [(key, value) for key, value in attributes]),
            _table(
                ("scope", "host access", "coherent", "dimensions", "capacity in bytes"),
                [(s, k["host_access"], k["coherent"], k["ndim"], k["capacity"]) for s, k in scopes],
            ),
            f"Abilities: {', '.join(f'`{ability}`' for ability in self.facts['abilities']) or 'none'}.",
        ]
        for outcome, title in (("fail", "Broken"), ("pass", "Kept"), ("skip", "Does not apply")):
            found = [r for r in self.results if r.outcome == outcome]
            if found:
                heads = ("sentence", "test") if outcome == "pass" else ("sentence", "test", "why")
                rows = [(r.sentence, f"`{r.name}`", r.detail)[: len(heads)] for r in found]
                sections += [f"## {title}", _table(heads, rows)]
        return "\n\n".join(section for section in sections if section) + "\n"


def check_suffix(suffix: str) -> None:
    """Raises InputError unless reports have a form of this suffix."""
    if suffix not in (".json", ".md"):
        raise InputError(f"a report ends in .md (Markdown) or .json, not in {suffix!r}")


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    if not rows:
        return ""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|")
