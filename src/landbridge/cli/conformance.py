"""``landbridge conformance``: tests one device against the contract, sentence by sentence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from landbridge.cli import arguments as args
from landbridge.cli.options import CliArgument, CliOption
from landbridge.cli.output import emit, message, progress, table
from landbridge.files.output_file import check_outputs, write_text

if TYPE_CHECKING:
    from landbridge.testing.conformance.run import Result

EXIT_FAILED = 3


def conformance(
    device: Annotated[
        str,
        CliArgument(
            metavar="DEVICE", help="The device: name[:index], as in sim:lazy.", completer=args.complete_devices
        ),
    ],
    report: Annotated[
        Path | None, CliOption(metavar="FILE", help="Write what was found to FILE, which ends in .md or .json.")
    ] = None,
    timeout: Annotated[
        float, CliOption(metavar="SECONDS", minimum=0.1, help="A test that takes longer hangs, and has failed.")
    ] = 30.0,
    json: args.Json = False,
) -> None:
    """Check that DEVICE keeps the device contract; exit with 3 when a sentence of it is broken.

    Each test runs in a process of its own: one that crashes or hangs has failed, and the others are run.
    """
    from landbridge.testing.conformance.isolation import IsolatedConformance
    from landbridge.testing.conformance.report import Report, check_suffix

    if report is not None:
        check_suffix(report.suffix)
        check_outputs([report])
    results: list[Result] = []
    with IsolatedConformance(device, timeout) as isolated:
        facts = isolated.facts()
        with progress(f"checking {facts['device']}"):
            for result in isolated.run():
                results.append(result)
                if result.outcome == "fail":
                    message(f"FAIL {result.name}: {result.detail}")
    found = Report(facts, results)
    if report is not None:
        write_text(report, found.text(report.suffix))
    counts = found.counts
    if json:
        emit(found.values())
    else:
        rows = [(r.outcome.upper(), r.name, r.detail or r.sentence) for r in results]
        table(facts["device"], ("outcome", "test", "detail"), sorted(rows))
        message(f"{facts['device']}: {counts['pass']} passed, {counts['fail']} failed, {counts['skip']} do not apply")
    if counts["fail"]:
        raise SystemExit(EXIT_FAILED)
