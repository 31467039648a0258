"""Running the suite without pytest, for the command line and for the tests of the suite itself."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal
from unittest import SkipTest

from landbridge.testing.conformance import DeviceConformance

Outcome = Literal["pass", "fail", "skip"]


@dataclass(frozen=True)
class Result:
    """One test on one device: the ``sentence`` of the contract it checks, and ``detail`` unless it passed."""

    name: str
    sentence: str
    outcome: Outcome
    detail: str = ""


def sentences() -> dict[str, str]:
    """The sentence of the contract that each test checks, by the name of the test."""
    names = sorted(name for name in dir(DeviceConformance) if name.startswith("test_"))
    return {name: " ".join((getattr(DeviceConformance, name).__doc__ or "").split()) for name in names}


def run_conformance(device_name: str, only: Collection[str] | None = None) -> list[Result]:
    """Every test, or those named by ``only``, on the device called ``device_name``; each by itself."""
    case = type("Case", (DeviceConformance,), {"device_name": device_name})
    return [_run(case, name, sentence) for name, sentence in sentences().items() if only is None or name in only]


def _run(case: type[DeviceConformance], name: str, sentence: str) -> Result:
    instance = case()
    try:
        instance.setup_method()
        try:
            getattr(instance, name)()
        finally:
            instance.teardown_method()
    except SkipTest as reason:
        return Result(name, sentence, "skip", str(reason))
    except Exception as error:
        what = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
        return Result(name, sentence, "fail", what)
    return Result(name, sentence, "pass")
