"""Each pass, and each named rewrite, by example: IR that goes in and the IR that comes out.

``ir/PASS.mlir`` shows a pass. Of a pass with named rewrites (``landbridge/passes/rewrites.py``), ``ir/PASS/RULE.mlir``
shows each rewrite. A file begins with a comment and aliases that its cases share. A case is

    // ---- what it shows
    // target npu: llvm -mcpu=x86-64-v3       (any number; without one, vdevice 0 is a CPU)
    // disabled: fuse.row_chain               (any number: rewrites that would do the same)
    // same memory: v, w                      (any number: the second constant is the first)
    the IR before the pass
    // becomes
    the IR after it

or ends in ``// unchanged`` in place of the last two. Both sides are parsed and compared as the printer writes them, so
that spaces and names of values do not count. The whole pass runs, on constants with contents seeded by their names.

A case of a rewrite whose title begins with "not " is a near miss. With the rewrite disabled, its result is the same;
that of every other case of the file is another one. A rewrite has at least one case of each kind. Both sides of its
cases compute the same numbers.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection
from dataclasses import dataclass, replace
from difflib import unified_diff
from pathlib import Path

import numpy as np
import pytest
from tests.passes.run_main import exact_values, run_main

from landbridge.compiler.compilation import PIPELINE
from landbridge.errors import CompileError, FallbackWarning
from landbridge.executable.parts import VDevice
from landbridge.ir.graph_ops import ConstantOp
from landbridge.ir.module import IRModule
from landbridge.passes.registry import rewrites, run_pipeline
from landbridge.targets import Target

FOLDER = Path(__file__).parent / "ir"
FILES = sorted(FOLDER.rglob("*.mlir"))


@dataclass(frozen=True)
class Case:
    """One case of a file: ``before`` and ``after`` begin with the aliases of the file.

    ``rule`` is the name of the rewrite that it shows, ``PASS.RULE``; empty for a case of a pass.
    """

    step: str
    rule: str
    title: str
    targets: dict[str, str]
    disabled: frozenset[str]
    same_memory: dict[str, str]
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

    @property
    def is_near_miss(self) -> bool:
        """Whether the rewrite must not apply."""
        return self.title.startswith("not ")

    def given(self) -> IRModule:
        """The module before the pass, with contents of constants."""
        module = self.module(self.before)
        for op in module.main.walk():
            if isinstance(op, ConstantOp):
                symbol = self.same_memory.get(op.symbol_name, op.symbol_name)
                array = module.constants.setdefault(symbol, exact_values(symbol, op.result.type))
                module.constants[op.symbol_name] = array
        return module

    def run(self, disabled: Collection[str] = ()) -> IRModule:
        """The module after the pass without the rewrites ``disabled`` and those that the case disables."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FallbackWarning)
            return run_pipeline(self.given(), [self.step], disabled=self.disabled.union(disabled))


def cases(path: Path) -> list[Case]:
    aliases, *parts = re.split(r"^// ---- ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = []
    for part in parts:
        title, _, text = part.partition("\n")
        before, becomes, after = text.partition("\n// becomes\n")
        if not becomes:
            before, becomes, _ = text.partition("\n// unchanged\n")
            after = before
        assert becomes, f"{path.name}: {title}: neither '// becomes' nor '// unchanged'"
        targets = dict(re.findall(r"^// target (\w+): (.*)$", before, re.MULTILINE))
        default = {"cpu": "llvm -mcpu=x86-64-v3"}
        step = path.stem if path.parent == FOLDER else path.parent.name
        rule = "" if path.parent == FOLDER else f"{step}.{path.stem}"
        disabled = frozenset(re.findall(r"^// disabled: (.*)$", before, re.MULTILINE))
        same = {second: first for first, second in re.findall(r"^// same memory: (\w+), (\w+)$", before, re.MULTILINE)}
        found.append(Case(step, rule, title, targets or default, disabled, same, aliases + before, aliases + after))
    return found


def all_cases() -> list[Case]:
    return [case for path in FILES for case in cases(path)]


def parameters(chosen: Collection[Case]) -> list[object]:
    return [pytest.param(case, id=f"{case.rule or case.step}: {case.title}") for case in chosen]


def difference(case: Case) -> str:
    """A diff from what is expected to what is found; empty where they are equal."""
    found, expected = case.run(), case.module(case.after)
    expected.vdevices = found.vdevices  # cases are written with the numbers of vdevices alone
    lines = expected.print().splitlines(), found.print().splitlines()
    return "\n".join(unified_diff(*lines, "expected", "found", n=2, lineterm=""))


@pytest.mark.sample(25)
@pytest.mark.parametrize("case", parameters(all_cases()))
def test_ir(case: Case) -> None:
    if diff := difference(case):
        pytest.fail(diff, pytrace=False)


OF_REWRITES = parameters([case for case in all_cases() if case.rule])


@pytest.mark.sample(25)
@pytest.mark.parametrize("case", OF_REWRITES)
def test_the_rewrite_of_a_case_makes_the_difference_and_that_of_a_near_miss_makes_none(case: Case) -> None:
    try:
        same = case.run([case.rule]).print() == case.run().print()
    except CompileError:  # some rewrites are needed: the verifier, or a later one, misses what they do
        same = False
    assert same == case.is_near_miss


@pytest.mark.sample(25)
@pytest.mark.parametrize("case", OF_REWRITES)
def test_both_sides_compute_the_same_numbers(case: Case) -> None:
    given = case.given()
    if given.dimensions():
        return  # a run decides sizes
    expected = run_main(given)
    for found, array in zip(run_main(case.run()), expected, strict=True):
        np.testing.assert_array_equal(found, array, strict=True)
        assert found.tobytes() == array.tobytes()  # zeros have the same signs


def test_every_pass_of_the_pipeline_has_a_file() -> None:
    assert not set(PIPELINE) - {case.step for case in all_cases()}


def test_every_rewrite_has_a_case_and_a_near_miss() -> None:
    shown = {(case.rule, case.is_near_miss) for case in all_cases() if case.rule}
    assert shown == {(each.name, is_near_miss) for each in rewrites() for is_near_miss in (False, True)}


def test_a_pass_with_named_rewrites_has_no_cases_of_its_own() -> None:
    assert not {case.step for case in all_cases() if not case.rule} & {case.step for case in all_cases() if case.rule}


def test_a_difference_is_shown() -> None:
    (case, *_) = cases(FOLDER / "dedup.mlir")
    lines = difference(replace(case, after=case.before)).splitlines()
    assert lines[:2] == ["--- expected", "+++ found"]
    assert any(line.startswith("-") and "@double_2" in line for line in lines)
    assert any(line.startswith("+") and "@double_1" in line for line in lines)
