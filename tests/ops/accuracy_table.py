"""The table of docs/numbers.md: ``python -m tests.ops.accuracy_table`` writes it anew."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from landbridge.operators import REGISTRY, Kernel
from landbridge.ops.accuracy import Accuracy, accuracy_of

PAGE = Path(__file__).parents[2] / "docs" / "numbers.md"
OPSET = 24
_FAMILIES = ("elementwise", "activation", "comparison", "quantize")
_HEAD = "| bound of f32 | operators | |\n| --- | --- | --- |\n"


def _bound(a: Accuracy) -> str:
    if a.ulp == 0:
        return "exact"
    text = f"{a.ulp:g} {'eps of the terms' if a.sums else 'ulp'}"
    text += "".join(f"; {kind} {ulp:g}" for kind, ulp in a.targets.items())
    text += f"; f64 {a.float64:g}" if a.float64 is not None else ""
    return text + (f"; {a.least:g} of the smallest number" if a.least else "")


def table() -> str:
    """The bounds of elementwise operators, those with the same in one row."""
    rows: dict[tuple[float, str, str], list[str]] = defaultdict(list)
    for name in sorted({each.op_type for each in REGISTRY.of_kind(Kernel) if not each.domain}):
        kernel = REGISTRY.find(Kernel, "", name, OPSET)
        declared = None if kernel is None else accuracy_of("", name, OPSET)
        if kernel is not None and declared is not None and kernel.function.__module__.rpartition(".")[2] in _FAMILIES:
            rows[declared.ulp, _bound(declared), declared.note].append(name)
    lines = [
        f"| {bound} | {' '.join(sorted(names))} | {note.replace('``', '`')} |"
        for (_, bound, note), names in sorted(rows.items())
    ]
    return _HEAD + "\n".join(lines) + "\n"


def main() -> None:
    """Replace the table of the page."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(_HEAD)
    _, _, after = rest.partition("\n\n")
    PAGE.write_text(f"{before}{table()}\n{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
