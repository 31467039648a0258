"""``lb.alias`` in IR text, which people edit: what is not so is refused at every stage, and what is stays as it is."""

from __future__ import annotations

import re
from pathlib import Path

import onnx
import pytest
from tests.frontend.test_retained_buffers import STATES, attention

import landbridge as lb

STAGES = ("import", "bufferize", "plan")
DECLARED = re.compile(r"lb\.alias = \{[^}]*\}")
TEXT = """<ir_version: 10, opset_import: ["" : 24]>
    caches (float[64,8] cache, int64[1,1] at, float[1,8] row, float[64,8] other)
        => (float[64,8] present, float[64,4] half, float[64,8] next)
    <int64[1] first = {0}, int64[1] last = {4}, int64[1] axis = {1}, float[1,8] w = {1, 1, 1, 1, 1, 1, 1, 1}>
    {
        present = ScatterND(cache, at, row)
        sum = Add(present, w)
        half = Slice(sum, first, last, axis)
        next = Add(other, w)
    }"""


def dumped(folder: Path, stage: str) -> Path:
    """The file of the pass ``stage`` in a folder of dumps."""
    (found,) = folder.glob(f"*-{stage}.mlir")
    return found


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("dump")
    lb.compile(onnx.parser.parse_model(TEXT), alias={"present": "cache", "next": "other"}, dump=folder)
    return {stage: dumped(folder, stage).read_text() for stage in STAGES}


NAMES = "an output, and an input that no other output may be"
LEGAL = "legal: equal shapes and dtypes"


@pytest.mark.filterwarnings("ignore::landbridge.ModelWarning")
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(
    ("alias", "error", "why"),
    [
        ('{nope = "cache"}', lb.VerifyError, NAMES),
        ('{present = "nope"}', lb.VerifyError, NAMES),
        ('{present = ""}', lb.VerifyError, NAMES),
        ('{present = "cache", next = "cache"}', lb.VerifyError, NAMES),
        ('{present = "present"}', lb.VerifyError, NAMES),
        ('{present = "next", next = "present"}', lb.VerifyError, NAMES),
        ('{present = "cache", next = "present"}', lb.VerifyError, NAMES),
        ('{cache = "present"}', lb.VerifyError, NAMES),
        ('{sum = "cache"}', lb.VerifyError, NAMES),
        ('{present = "w"}', lb.VerifyError, NAMES),
        ('{present = "cache", present = "other"}', lb.ParseError, "does not parse"),
        ('{half = "cache"}', lb.CompileError, LEGAL),
        ('{present = "at"}', lb.CompileError, LEGAL),
        ('{present = "row"}', lb.CompileError, LEGAL),
        ('{present = "other", next = "cache"}', lb.CompileError, "reads 'other' after node 'present'"),
        ("{present = 3 : i64}", lb.CompileError, "lb.alias of 'present' is 3 : i64; legal: the name of an input"),
        ('{present = ["cache"]}', lb.CompileError, "legal: the name of an input"),
        ('"cache"', lb.CompileError, 'attribute lb.alias is "cache"; legal: a dictionary'),
        ('["cache"]', lb.CompileError, "legal: a dictionary"),
        ("3 : i64", lb.CompileError, "attribute lb.alias is 3 : i64; legal: a dictionary"),
        ("unit", lb.CompileError, "attribute lb.alias is unit; legal: a dictionary"),
    ],
)
def test_an_alias_that_cannot_be_is_refused(
    stages: dict[str, str], stage: str, alias: str, error: type[Exception], why: str
) -> None:
    text, changed = DECLARED.subn(f"lb.alias = {alias}", stages[stage])
    assert changed == 1
    with pytest.raises(error, match=why):
        lb.compile(text)


@pytest.mark.filterwarnings("ignore::landbridge.ModelWarning")
@pytest.mark.parametrize("stage", STAGES)
def test_an_alias_that_is_so_stays(stages: dict[str, str], stage: str) -> None:
    assert dict(lb.compile(stages[stage]).main.aliases) == {"present": "cache", "next": "other"}


@pytest.mark.filterwarnings("ignore::landbridge.ModelWarning")
@pytest.mark.parametrize(
    ("node", "why"),
    [
        ("MatMul(x, x)", "as this IR with a plan declares: node 'y' reads elements of 'x' elsewhere"),
        ("Exp(x)", "the kernel exp.* is not one that works in place"),
    ],
)
def test_an_alias_that_is_added_to_a_plan_is_proved(node: str, why: str, tmp_path: Path) -> None:
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
        sums (float[4,4] x, float[4,4] u) => (float[4,4] y, float[4,4] b)
        {{ a = MatMul(u, u) b = MatMul(a, u) y = {node} }}"""
    lb.compile(onnx.parser.parse_model(text), dump=tmp_path)
    plan, names = dumped(tmp_path, "plan").read_text(), 'lb.output_names = ["y", "b"]'
    assert "lb.alloc_storage" in plan and names in plan
    with pytest.raises(lb.CompileError, match=why):
        lb.compile(plan.replace(names, f'{names}, lb.alias = {{y = "x"}}'))


@pytest.mark.filterwarnings("ignore::landbridge.ModelWarning")
def test_caches_of_every_program_are_proved_again_from_their_plans(tmp_path: Path) -> None:
    lb.compile(attention(), alias=STATES, dump=tmp_path)
    plans = sorted(tmp_path.rglob("*-plan.mlir"))
    assert len(plans) > 1
    for plan in plans:
        assert dict(lb.compile(plan.read_text()).main.aliases) == STATES
