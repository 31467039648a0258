"""Where each kernel of a program runs, and what its tensors cross."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from landbridge.cli.output import table

if TYPE_CHECKING:
    from landbridge.executable.executable import Executable


def placement_report(executable: Executable) -> dict[str, list[dict[str, object]]]:
    """``kernels``: each with its place; ``crossings``: each with the bytes it shows or copies, in order."""
    from landbridge.dtypes import dtype
    from landbridge.executable import instructions as ins

    kernels: list[dict[str, object]] = []
    crossings: list[dict[str, object]] = []
    main = executable.main
    nbytes = {number: spec.nbytes for number, spec in enumerate((*main.inputs, *main.outputs, *main.parameters))}
    for instruction in ins.flattened(executable.main.instructions):
        match instruction:
            case ins.AllocTensor() | ins.View():
                size = math.prod(instruction.shape) * dtype(instruction.dtype).itemsize
                nbytes[instruction.dst] = size
                if isinstance(instruction, ins.View) and instruction.name:
                    place = str(executable.vdevices[instruction.vdevice])
                    crossings.append({"name": instruction.name, "to": place, "nbytes": size, "how": "view"})
            case ins.ToVDevice():
                size = nbytes.get(instruction.dst, 0)
                crossings.append({"name": instruction.name, "to": "", "nbytes": size, "how": "copy"})
            case ins.Call():
                kernels.append({"name": instruction.name, "on": executable.vdevices[instruction.vdevice].name})
            case ins.HostCall():
                kernels.append({"name": instruction.builtin, "on": "the host"})
    return {"kernels": kernels, "crossings": crossings}


def print_placement_report(report: dict[str, list[dict[str, object]]]) -> None:
    table("kernels", ("kernel", "on"), [(k["name"], k["on"]) for k in report["kernels"]])
    table(
        "crossings",
        ("tensor", "to", "bytes", "how"),
        [(c["name"], c["to"], c["nbytes"], c["how"]) for c in report["crossings"]],
    )
