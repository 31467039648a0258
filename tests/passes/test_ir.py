"""Each pass by example: ``ir/PASS.mlir`` has IR that goes in and the IR that comes out.

A file begins with a comment and aliases that its cases share. A case is

    // ---- what it shows
    // target npu: llvm -mcpu=x86-64-v3       (any number; without one, vdevice 0 is a CPU)
    the IR before the pass
    // becomes
    the IR after it

Both sides are parsed and compared as the printer writes them, so that spaces and names of values do not count.
Constants have contents seeded by their names; a pass that looks at them is tested with numbers elsewhere.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, replace
from difflib import unified_diff
from pathlib import Path

import pytest

from landbridge.compiler.compilation import PIPELINE
from landbridge.errors import FallbackWarning
from landbridge.executable.executable import VDevice
from landbridge.ir.constants import fill_missing_constants
from landbridge.ir.module import IRModule
from landbridge.passes.registry import run_pipeline
from landbridge.targets import Target

FILES = sorted((Path(__file__).parent / "ir").glob("*.mlir"))


@dataclass(frozen=True)
class Case:
    """One case of a file: ``before`` and ``after`` begin with the aliases of the file."""

    step: str
    title: str
    targets: dict[str, str]
    before: str
    after: str

    def module(self, text: str) -> IRModule:
        """``text`` for the targets of this case, without names of values."""
        targets = tuple(Target(t) for t in self.targets.values())
        module = IRModule.parse(text, targets, tuple(VDevice(name, i) for i, name in enumerate(self.targets)))
        for op in module.op.walk():
            for value in (*op.results, *(a for region in op.regions for block in region.blocks for a in block.args)):
                value.name_hint = None
        return module

    def run(self) -> IRModule:
        """The module after the pass."""
        module = self.module(self.before)
        fill_missing_constants(module)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FallbackWarning)
            return run_pipeline(module, [self.step])


def cases(path: Path) -> list[Case]:
    aliases, *parts = re.split(r"^// ---- ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = []
    for part in parts:
        title, _, text = part.partition("\n")
        before, becomes, after = text.partition("\n// becomes\n")
        assert becomes, f"{path.name}: {title}: no '// becomes'"
        targets = dict(re.findall(r"^// target (\w+): (.*)$", before, re.MULTILINE))
        default = {"cpu": "llvm -mcpu=x86-64-v3"}
        found.append(Case(path.stem, title, targets or default, aliases + before, aliases + after))
    return found


def difference(case: Case) -> str:
    """A diff from what is expected to what is found; empty where they are equal."""
    found, expected = case.run(), case.module(case.after)
    expected.vdevices = found.vdevices  # cases are written with the numbers of vdevices alone
    lines = expected.print().splitlines(), found.print().splitlines()
    return "\n".join(unified_diff(*lines, "expected", "found", n=2, lineterm=""))


@pytest.mark.sample(25)
@pytest.mark.parametrize("case", [pytest.param(c, id=f"{c.step}: {c.title}") for path in FILES for c in cases(path)])
def test_ir(case: Case) -> None:
    if diff := difference(case):
        pytest.fail(diff, pytrace=False)


def test_every_pass_of_the_pipeline_has_a_file() -> None:
    assert not set(PIPELINE) - {path.stem for path in FILES}


def test_a_difference_is_shown() -> None:
    (case, *_) = cases(Path(__file__).parent / "ir" / "dedup.mlir")
    lines = difference(replace(case, after=case.before)).splitlines()
    assert lines[:2] == ["--- expected", "+++ found"]
    assert any(line.startswith("-") and "@double_2" in line for line in lines)
    assert any(line.startswith("+") and "@double_1" in line for line in lines)
