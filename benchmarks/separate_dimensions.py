"""Every node test of the onnx wheel with a dimension of its own for each axis of each input: right, refused or wrong.

``python benchmarks/separate_dimensions.py --write`` makes results/separate_dimensions.md. Cases that do not end right
with the shapes of their files either, such as those of strings, are left out: of random numbers and of what is not
compiled.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import warnings
from collections import Counter, defaultdict
from pathlib import Path
from typing import TypedDict

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples" / "ocr"), str(Path(__file__).parent)]

from measure import RESULTS, write  # noqa: E402


class Row(TypedDict):
    """A case: its operator, what it ends in, where and why, with the documented reason."""

    name: str
    operator: str
    outcome: str
    stage: str
    why: str
    reason: str


def swept(names: list[str]) -> list[Row]:
    """The rows of the cases ``names`` that end right with the shapes of their files."""
    from tests.open_dimensions.separate_cases import outcome
    from tests.ops import node_cases

    rows: list[Row] = []
    for name in names:
        found = outcome(name)
        if found.kind != "right" and outcome(name, is_separate=False).kind != "right":
            continue
        case = node_cases.cases()[name].model
        assert case is not None
        operator = (
            "function bodies" if name.endswith("_expanded") or "_expanded_" in name else case.graph.node[-1].op_type
        )
        rows.append(
            Row(name=name, operator=operator, outcome=found.kind, stage=found.stage, why=found.why, reason=found.reason)
        )
    return rows


def in_parts(only: str, workers: int) -> list[Row]:
    """All rows, made by processes of as many cases each; a part that ends a process is not in them."""
    command = [sys.executable, __file__, "--only", only, "--workers", str(workers)]
    parts = [
        subprocess.Popen([*command, "--part", str(part)], stdout=subprocess.PIPE, text=True) for part in range(workers)
    ]
    return sorted((row for part in parts for row in json.loads(part.communicate()[0])), key=lambda row: row["name"])


def tables(rows: list[Row]) -> str:
    """The refusals by reason, and by operator."""
    refused = [row for row in rows if row["outcome"] != "right"]
    reasons = Counter(row["reason"] or f"none documented: {_cause(row['why'])}" for row in refused)
    one = {row["reason"] or f"none documented: {_cause(row['why'])}": row["name"] for row in reversed(refused)}
    lines = ["| cases | what has to be known | one of them |", "| --- | --- | --- |"]
    lines += [f"| {count} | {reason} | `{one[reason]}` |" for reason, count in reasons.most_common()]
    by: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        by[row["operator"]][row["outcome"]] += 1
    lines += ["", "| operator | right | refused | wrong | failed |", "|" + " --- |" * 5]
    for operator, counts in sorted(by.items()):
        lines.append(
            f"| {operator} | " + " | ".join(str(counts[k]) for k in ("right", "refused", "wrong", "failed")) + " |"
        )
    return "\n".join(lines) + "\n"


def _cause(why: str) -> str:
    line = next((each for each in why.split("\n") if each.lstrip().startswith("- ")), why.split("\n")[0])
    line = re.sub(r"'[^']*'", "X", line.strip().removeprefix("- "))
    return re.sub(r"\d+", "n", line)[:110].replace("|", "/")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--part", type=int)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.part is not None:
        from tests.open_dimensions.separate_cases import names

        warnings.simplefilter("ignore")
        chosen = [name for name in names() if re.search(options.only, name)]
        print(json.dumps(swept(chosen[options.part :: options.workers])))
        return
    rows = in_parts(options.only, options.workers)
    counts = Counter(row["outcome"] for row in rows)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    if options.write:
        kinds = ("right", "refused", "wrong", "failed")
        write("separate_dimensions", ("cases", *kinds), [(len(rows), *(counts[kind] for kind in kinds))])
        page = RESULTS / "separate_dimensions.md"
        page.write_text(f"{page.read_text()}\n{tables(rows)}")
    print(counts)
    for row in rows:
        if row["outcome"] in ("wrong", "failed") or (row["outcome"] == "refused" and not row["reason"]):
            print(row["name"], row["outcome"], row["stage"], row["why"][:200].replace("\n", " "))


if __name__ == "__main__":
    main()
