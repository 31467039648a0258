"""``landbridge conformance``: the contract, sentence by sentence, on one device."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from landbridge.cli import arguments as args
from landbridge.cli.output import emit, message, progress, table

EXIT_FAILED = 3


def conformance(
    device: Annotated[str, typer.Argument(metavar="DEVICE", help="The device: name[:index], as in sim:lazy.")],
    json: args.Json = False,
) -> None:
    """Check that DEVICE keeps the device contract; exit with 3 when a sentence of it is broken."""
    from landbridge.device import registry
    from landbridge.testing.conformance.run import run_conformance

    found = registry.device(device)
    with progress(f"checking {found}"):
        results = run_conformance(device)
    counts = {outcome: sum(r.outcome == outcome for r in results) for outcome in ("pass", "fail", "skip")}
    if json:
        emit({"device": str(found), **counts, "results": [asdict(r) for r in results]})
    else:
        rows = [(r.outcome.upper(), r.name, r.detail or r.sentence) for r in results]
        table(str(found), ("outcome", "test", "detail"), sorted(rows))
        message(f"{found}: {counts['pass']} passed, {counts['fail']} failed, {counts['skip']} do not apply")
    if counts["fail"]:
        raise typer.Exit(EXIT_FAILED)
