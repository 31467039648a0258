"""Runs a test of the suite without pytest."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Literal
from unittest import SkipTest

from landbridge.device.answers import raised
from landbridge.errors import LandbridgeError
from landbridge.records import record
from landbridge.testing.conformance import DeviceConformance

Outcome = Literal["pass", "fail", "skip"]


@record(frozen=True)
class Result:
    """The result of one test on one device: the ``sentence`` of the contract it checks, and ``detail`` unless it
    passed.

    ``seconds`` are those of the whole test, its process included.
    """

    name: str
    sentence: str
    outcome: Outcome
    detail: str = ""
    seconds: float = 0.0


def sentences() -> dict[str, str]:
    """Returns the sentence of the contract that each test checks, by the name of the test."""
    names = sorted(name for name in dir(DeviceConformance) if name.startswith("test_"))
    return {name: " ".join((getattr(DeviceConformance, name).__doc__ or "").split()) for name in names}


def run_test(device_name: str, name: str, *, separate_process: bool = False) -> Result:
    """Runs the test called ``name`` on the device called ``device_name`` in this process, which has no other use where
    it is a ``separate_process``.

    Any exception is a failure, also one that ends a Python process; only Ctrl-C is passed on.
    """
    facts = {"device_name": device_name, "separate_process": separate_process}
    case: type[DeviceConformance] = type("Case", (DeviceConformance,), facts)
    sentence, instance, begun = sentences()[name], case(), time.perf_counter()

    def result(outcome: Outcome, detail: str = "") -> Result:
        return Result(name, sentence, outcome, detail, round(time.perf_counter() - begun, 3))

    try:
        instance.setup_method()
        try:
            getattr(instance, name)()
        except BaseException:
            with suppress(Exception):  # the first failure is reported
                instance.teardown_method()
            raise
        instance.teardown_method()
    except SkipTest as reason:
        return result("skip", str(reason))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return result("fail", _broken(error))
    return result("pass")


def _broken(error: BaseException) -> str:
    if isinstance(error, AssertionError):
        return str(error)
    return f"{type(error).__name__}: {error}" if isinstance(error, LandbridgeError) else raised(error)
