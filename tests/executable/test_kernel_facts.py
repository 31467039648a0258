"""Facts of kernels: kept by files, and refused where they say something else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import landbridge as lb
from landbridge.errors import ExecutableError
from landbridge.executable.kernel_facts import KERNELS, facts_of
from tests.vm import programs
from tests.whole_models.small_models import add


def test_a_file_keeps_them(tmp_path: Path) -> None:
    executable = lb.compile(add())
    facts = facts_of(executable)
    assert facts
    executable.save(tmp_path / "add.lbx")
    assert facts_of(lb.load(tmp_path / "add.lbx")) == facts


def test_a_program_may_have_none() -> None:
    assert facts_of(programs.two_stages()) == {}


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"f": 1}', '{"f": {"flops": -1, "nbytes": 0, "schedule": "", "weighed": []}}']
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ExecutableError, match="save it again"):
        facts_of(replace(programs.two_stages(), metadata={KERNELS: text}))
