"""Operators that the compiler's own pipeline makes kernels of, run on the device and compared with numpy."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

import landbridge as lb
from landbridge.array_type import Array
from landbridge.device.protocols import DeviceModules
from landbridge.dtypes import numpy_dtype
from landbridge.errors import CompileError, FallbackWarning, TargetError
from landbridge.records import record
from landbridge.targets.arithmetic import arithmetic_of
from landbridge.testing.conformance.base import ConformanceCase

if TYPE_CHECKING:
    from onnx import ModelProto


#: The opset of the operators below.
OPSET = 22
#: Largest legal errors, in units of the last place of float32: those of docs/numbers.md, or those that OpenCL allows
#: devices (OpenCL C 3.0, "Relative Error as ULPs", full profile) where they are larger: kernels may use functions of
#: the device, as those of a foreign code generator do. Results of other operators are exact. 16-bit floats are computed
#: in float32 and rounded once.
ULP = {
    "Add": 0.5,
    "Mul": 0.5,
    "Cast": 0.5,
    "DequantizeLinear": 0.5,  # of 8 bits
    "Div": 2.5,  # OpenCL
    "Sqrt": 3.0,  # OpenCL
    "Exp": 3.0,  # OpenCL
    "Log": 3.0,  # OpenCL
    "Sin": 4.0,  # OpenCL
    "Tan": 5.0,  # OpenCL
    "Atan": 5.0,  # OpenCL
    "Tanh": 5.0,  # OpenCL
    "Erf": 16.0,  # OpenCL
    "Pow": 16.0,  # OpenCL
    "Sigmoid": 6.0,  # of OpenCL's: a quotient of 1 and a sum with an exp
    "Softmax": 400.0,
}
#: Those of float64 that are smaller: OpenCL has quotients and roots of it rounded correctly.
ULP_OF_DOUBLES = {"Div": 0.5, "Sqrt": 0.5}
#: Largest legal errors of sums, in eps of float32 of the magnitudes that are added, from docs/numbers.md.
EPS_OF_TERMS = {"ReduceSum": 300.0, "MatMul": 300.0}
#: Binary digits, and the exponent (as frexp gives it) of the smallest normal number.
_FORMATS = {"float16": (11, -13), "bfloat16": (8, -125), "float32": (24, -125), "float64": (53, -1021)}


@record(frozen=True, eq=False)
class Computation:
    """Operator ``op`` on ``inputs``, and the result that is ``wanted``: of an integer dtype or bool, or with more
    precision.

    ``result`` is the dtype of what the device computes; a Cast is to it. ``condition`` is the sum of the magnitudes of
    each result's terms, for operators whose bound is relative to it. ``constants`` are further inputs that the compiler
    knows.
    """

    op: str
    inputs: tuple[Array, ...]
    wanted: Array
    result: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    constants: tuple[Array, ...] = ()
    condition: Array | None = None

    def __str__(self) -> str:
        dtypes = dict.fromkeys(array.dtype.name for array in self.inputs)
        to = "" if self.result in dtypes else f" to {self.result}"
        shape = "x".join(map(str, self.inputs[0].shape))
        return f"{self.op} of {' and '.join(dtypes)}{to}, {shape}"

    @property
    def legal_error(self) -> Array:
        """Returns the largest legal error of each element."""
        if self.result not in _FORMATS:
            return np.zeros(self.wanted.shape)
        computed = "float64" if self.result == "float64" else "float32"
        if self.condition is not None:
            digits, _ = _FORMATS[computed]
            legal = EPS_OF_TERMS[self.op] * 2.0 ** (1 - digits) * self.condition
        else:
            doubles = ULP_OF_DOUBLES if computed == "float64" else {}
            legal = doubles.get(self.op, ULP.get(self.op, 0.0)) * _last_place(self.wanted, computed)
        if self.result != computed:
            legal = legal + 0.5 * _last_place(self.wanted, self.result)
        return np.asarray(legal)

    def flushed(self) -> Array:
        """Returns by how much more each element may be wrong where denormal numbers may be zeros.

        A result below the smallest normal number loses at most itself, a sum at most its denormal operands. Others
        have no such operand, and lose nothing.
        """
        if self.result not in _FORMATS:
            return np.zeros(self.wanted.shape)
        smallest = 2.0 ** (_FORMATS[self.result][1] - 1)
        is_small = abs(self.wanted) < smallest
        for each in self.inputs:
            if each.shape == self.wanted.shape:
                is_small = is_small | (abs(each.astype(np.float64)) < smallest)
        return np.where(is_small, np.maximum(abs(self.wanted), len(self.inputs) * smallest), 0)

    def difference(self, found: Array, *, flushes: bool = False) -> str | None:
        """Returns how ``found`` differs from what is wanted, in words; None where all errors are legal.

        ``flushes``: the target says that denormal numbers may be zeros.
        """
        if found.shape != self.wanted.shape or found.dtype.name != self.result:
            return f"{self} has shape {found.shape} and dtype {found.dtype}, not {self.wanted.shape} and {self.result}"
        legal, value = self.legal_error + (self.flushed() if flushes else 0), found.astype(self.wanted.dtype)
        if self.wanted.dtype == bool:
            error = (value != self.wanted).astype(np.int64)
        else:
            with np.errstate(all="ignore"):
                error = np.where(value == self.wanted, 0, np.abs(value - self.wanted))
        wrong = ~(error <= legal)
        if not wrong.any():
            return None
        at = tuple(int(i) for i in np.argwhere(wrong)[np.argmax(error[wrong] / np.maximum(legal[wrong], 1e-300))])
        arguments = ", ".join(str(array[at]) for array in self.inputs if array.shape == self.wanted.shape)
        where = f"at {list(at)}, of {arguments}," if arguments else f"at {list(at)}"
        limit = f"{legal[at]:.3g} more or less is legal" if legal[at] else "it is to be exact"
        return (
            f"{self}: {int(wrong.sum())} of {wrong.size} elements are wrong; {where} it is {found[at]!s}, and "
            f"{self.wanted[at]!s} is right; {limit}"
        )


def _last_place(values: Array, dtype: str) -> Array:
    """Returns the unit of the last place of a float ``dtype`` at each of ``values``."""
    digits, lowest = _FORMATS[dtype]
    _, exponents = np.frexp(values)
    return np.asarray(
        np.ldexp(values.dtype.type(1), np.maximum(np.where(values == 0, lowest, exponents), lowest) - digits)
    )


def model_of(computations: Sequence[Computation]) -> ModelProto:
    """Returns a model with a node for each of ``computations``, named ``c0``, ``c1`` and so on as its results are."""
    from onnx import helper, numpy_helper

    def value(name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), shape)

    nodes, inputs, outputs, constants = [], [], [], []
    for number, each in enumerate(computations):
        names = [f"c{number}_in{k}" for k in range(len(each.inputs))]
        known = [f"c{number}_constant{k}" for k in range(len(each.constants))]
        to = {"to": helper.np_dtype_to_tensor_dtype(numpy_dtype(each.result))} if each.op == "Cast" else {}
        attributes = {**each.attributes, **to}
        nodes.append(helper.make_node(each.op, names + known, [f"c{number}"], name=f"c{number}", **attributes))
        inputs += [value(name, a.dtype, a.shape) for name, a in zip(names, each.inputs, strict=True)]
        constants += [numpy_helper.from_array(a, name) for name, a in zip(known, each.constants, strict=True)]
        outputs.append(value(f"c{number}", numpy_dtype(each.result), each.wanted.shape))
    graph = helper.make_graph(nodes, "computations", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)


_SHOWN = 3  # operators that are wrong, in a message

_CompiledOperators: TypeAlias = tuple[lb.Executable | None, Sequence[int], list[str]]
#: Programs by target and model: a process that tests several devices compiles each once.
_programs: dict[tuple[str, bytes], _CompiledOperators] = {}


class ComputationCase(ConformanceCase):
    """A test that computes on the device what numpy computes with more precision."""

    def expect_computed(self, computations: Sequence[Computation]) -> None:
        """Fails where a result is wrong; skips the test where the device has kernels of none of ``computations``."""
        target = self.target()
        executable, computed = self.compiled(computations, target)
        session = lb.Session(executable, device=self.device)
        for number, each in enumerate(computed):
            for k, array in enumerate(each.inputs):
                session.set_input(f"c{number}_in{k}", array)
        session.run()
        found = [np.asarray(session.get_output(number).to_device("cpu")) for number in range(len(computed))]
        flushes = arithmetic_of(target).flushes_denormals is True
        differences = (each.difference(array, flushes=flushes) for each, array in zip(computed, found, strict=True))
        failures = [difference for difference in differences if difference is not None]
        if failures:
            more = [f"and {len(failures) - _SHOWN} more operators are wrong"] if len(failures) > _SHOWN else []
            raise AssertionError("; ".join([*failures[:_SHOWN], *more]))

    def compiled(
        self, computations: Sequence[Computation], target: lb.Target
    ) -> tuple[lb.Executable, Sequence[Computation]]:
        """Returns a program of those of ``computations`` that have kernels for ``target``, and these; skips the test
        where none has one.
        """
        key = target.to_json(), model_of(computations).SerializeToString()
        found = _programs.get(key)
        if found is None:
            found = _programs[key] = _compiled(computations, target)
        executable, numbers, refusals = found
        if executable is None:
            self.skip(f"has no kernel of {refusals[0]}")
        return executable, [computations[number] for number in numbers]

    def target(self) -> lb.Target:
        """Returns what the compiler compiles for the device; skips the test where it compiles nothing."""
        self.ability(DeviceModules)
        if self.device.memory_kind().ndim != 1:
            self.skip("has no flat memory of scope 'global'")
        try:
            return lb.Target.from_device(self.device)
        except TargetError as error:
            self.skip(f"has no target kind: {error}")


def _compiled(computations: Sequence[Computation], target: lb.Target) -> _CompiledOperators:
    """Returns a program of those of ``computations`` that have kernels for ``target``, their numbers, and why others
    have none.

    The program is None where none of them has one.
    """
    executable, refusal = _compile(computations, target)
    if executable is not None:
        return executable, range(len(computations)), []
    refusals = [_compile([each], target)[1] for each in computations] if len(computations) > 1 else [refusal]
    numbers = [number for number, why in enumerate(refusals) if not why]
    if numbers:
        executable, refusal = _compile([computations[number] for number in numbers], target)
        if executable is None:
            raise AssertionError(f"kernels that are compiled one by one are not in one program: {refusal}")
    return executable, numbers, [why for why in refusals if why]


def _compile(computations: Sequence[Computation], target: lb.Target) -> tuple[lb.Executable | None, str]:
    """Returns the program, or None and why ``target`` has not a kernel of each."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            executable = lb.compile(model_of(computations), target)
        except CompileError as error:
            return None, f"{computations[0]}: {error}"
    for each in caught:
        if isinstance(each.message, FallbackWarning):
            _, _, why = str(each.message).partition(": ")
            return None, f"{computations[0]}: {why}"
    return executable, ""
