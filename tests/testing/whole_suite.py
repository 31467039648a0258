"""The conformance suite on one device, in this process."""

from __future__ import annotations

from collections.abc import Collection

from landbridge.testing.conformance.run import Result, run_test, sentences


def run_conformance(
    device_name: str, only: Collection[str] | None = None, *, separate_process: bool = False
) -> list[Result]:
    """Every test, or those named by ``only``, on the device called ``device_name``, as ``run_test`` runs it."""
    return [
        run_test(device_name, name, separate_process=separate_process)
        for name in sentences()
        if only is None or name in only
    ]
