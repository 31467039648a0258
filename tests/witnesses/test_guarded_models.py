"""Whole models, kernel by kernel, with every operand beside inaccessible pages: what a Session gives, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest

import landbridge as lb
from tests.whole_models.light_models import light_model, picture
from tests.witnesses.guard_pages import SIDES, GuardedRun, in_child

LIGHT = (
    "bvlc_alexnet",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "resnet50",
    "shufflenet",
    "squeezenet",
    "zfnet512",
)


def check_model(name: str, target: str) -> None:
    """``light_<name>`` on a target, each kernel run twice more: with the pages after its operands, and before."""
    executable = lb.compile(light_model(name), target)
    wanted = [np.asarray(output) for output in lb.Session(executable, num_threads=1)(picture())]
    for side in SIDES:
        for guarded, ours in zip(GuardedRun(executable, side)(picture()), wanted, strict=True):
            assert guarded.tobytes() == ours.tobytes(), f"{name} on {target} with pages {side} its operands"


def test_squeezenet() -> None:
    in_child(check_model, "squeezenet", "llvm")


@pytest.mark.full
@pytest.mark.parametrize("name", sorted({*LIGHT} - {"squeezenet"}))
def test_light_models(name: str) -> None:
    in_child(check_model, name, "llvm")


@pytest.mark.full
@pytest.mark.parametrize("name", ["shufflenet", "squeezenet"])
def test_light_models_as_c(name: str) -> None:
    in_child(check_model, name, "c -cflags=-O1")
