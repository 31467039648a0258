"""Reports where each kernel of a program runs, and how its tensors cross between devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from landbridge.cli.output import table

if TYPE_CHECKING:
    from landbridge.executable.executable import Executable


def placement_report(executable: Executable) -> dict[str, list[dict[str, object]]]:
    """Returns ``kernels``, each with its placement, and ``crossings``, each with its bytes viewed or copied and why, in
    order.
    """
    from landbridge.executable import instructions as ins

    kernels: list[dict[str, object]] = []
    for instruction in ins.flattened(executable.main.instructions):
        match instruction:
            case ins.Call():
                kernels.append({"name": instruction.name, "on": executable.vdevices[instruction.vdevice].name})
            case ins.HostCall():
                kernels.append({"name": instruction.builtin, "on": "the host"})
    return {"kernels": kernels, "crossings": crossings_report(executable)}


def crossings_report(executable: Executable) -> list[dict[str, object]]:
    """Returns the JSON form of ``executable.crossings``."""
    return [
        {"name": c.name, "to": str(c.to), "nbytes": c.nbytes, "how": "view" if c.is_view else "copy", "why": c.why}
        for c in executable.crossings
    ]


def print_placement_report(report: dict[str, list[dict[str, object]]]) -> None:
    table("kernels", ("kernel", "on"), [(k["name"], k["on"]) for k in report["kernels"]])
    print_crossings(report["crossings"])


def print_crossings(crossings: list[dict[str, object]]) -> None:
    table(
        "crossings",
        ("tensor", "to", "bytes", "how", "why"),
        [(c["name"], c["to"], c["nbytes"], c["how"], c["why"]) for c in crossings],
    )
