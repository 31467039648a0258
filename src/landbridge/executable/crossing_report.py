"""Reports which tensors of a program cross between its vdevices, as a view or a copy, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from landbridge.executable import instructions as ins
from landbridge.executable.parts import Function, VDevice
from landbridge.records import record
from landbridge.shapes.strides import dense_bytes


@record(frozen=True)
class CrossingReport:
    """One transfer of tensor ``name``, of ``nbytes``, from one vdevice ``to`` another: a view of the same memory
    (``is_view``) or a copy, and ``why``, as text.

    ``why`` is empty for a copy that is not a crossing of the model, such as one to an output in a separate scope.
    """

    name: str
    to: VDevice
    nbytes: int
    is_view: bool
    why: str


def crossings_of(function: Function, vdevices: Sequence[VDevice]) -> Iterator[CrossingReport]:
    """Yields a CrossingReport for each transfer between vdevices in ``function``, in the order of its instructions."""
    specs = (*function.inputs, *function.outputs, *function.parameters)
    known = {number: (spec.nbytes, spec.vdevice) for number, spec in enumerate(specs)}
    storages: dict[int, int] = {}
    for instruction in ins.flattened(function.instructions):
        match instruction:
            case ins.AllocStorage():
                storages[instruction.dst] = instruction.vdevice
            case ins.AllocTensor():
                location = storages[instruction.storage]
                known[instruction.dst] = dense_bytes(instruction.shape, instruction.dtype), location
            case ins.LoadConstant():
                known[instruction.dst] = 0, instruction.vdevice
            case ins.View():
                nbytes = dense_bytes(instruction.shape, instruction.dtype)
                is_crossing = bool(instruction.why or instruction.name)
                location = instruction.vdevice if is_crossing else known.get(instruction.src, (0, 0))[1]
                known[instruction.dst] = nbytes, location
                if is_crossing:
                    yield CrossingReport(instruction.name, vdevices[location], nbytes, True, instruction.why)
            case ins.ToVDevice():
                nbytes, location = known.get(instruction.dst, (0, 0))
                yield CrossingReport(instruction.name, vdevices[location], nbytes, False, instruction.why)
