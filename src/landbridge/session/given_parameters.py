"""GivenParameters: the weights that set_params gave a Session, for further executors of its program."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from landbridge.dtypes import stored_dtype
from landbridge.errors import InputError
from landbridge.executable.executable import Executable
from landbridge.executable.parts import TensorSpec, parameter_constant
from landbridge.memory import ledger
from landbridge.memory.borrowed import host_device
from landbridge.session.open_arguments import array_of
from landbridge.tensor import Tensor
from landbridge.vm.argument import as_memory, check_fit, name_of, parameter_tensor
from landbridge.vm.slot_names import find_spec


class TakesParameters(Protocol):
    """An Executor, as far as its weights are concerned."""

    def set_params(self, values: Mapping[str, Any]) -> object:
        """Copy new values to weights."""

    def borrow_params(self, values: Mapping[str, Tensor]) -> Callable[[], object]:
        """Returns a function that binds weights in place."""


class GivenParameters:
    """The values of weights, by name: ``copied`` ones, which nobody writes, and ``bound``, memory of the caller."""

    def __init__(self) -> None:
        self.copied: dict[str, Any] = {}
        self.bound: dict[str, Tensor] = {}

    def note_copies(self, values: Mapping[str, Any]) -> None:
        """Replace the values of weights by copies."""
        for name in values:
            self.bound.pop(name, None)
        self.copied.update(values)

    def note_bound(self, values: Mapping[str, Tensor]) -> None:
        """Replace the values of weights by memory of the caller."""
        for name in values:
            self.copied.pop(name, None)
        self.bound.update(values)

    def give(self, executor: TakesParameters, names: Container[str]) -> None:
        """Give ``executor``, a new one of the same program or a part of it, the values of its weights ``names``."""
        copied = {name: value for name, value in self.copied.items() if name in names}
        bound = {name: value for name, value in self.bound.items() if name in names}
        if copied:
            executor.set_params(copied)
        if bound:
            executor.borrow_params(bound)()


def all_of(binds: Sequence[Callable[[], object]]) -> Callable[[], object]:
    """Returns a function that calls all of ``binds``, which bind the weights of one executor each."""

    def bind() -> None:
        for each in binds:
            each()

    return bind


def named_values(values: object) -> Mapping[str, Any]:
    """Returns ``values``, given for weights by name; raises InputError where it is no mapping."""
    if isinstance(values, Mapping):
        return values
    raise InputError(f"values of weights are given as a {type(values).__name__}; legal: a dict of names and values")


def copies_of_parameters(specs: Sequence[TensorSpec], values: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """Returns copies of ``values`` by name; raises InputError, before it copies any, where one is none of ``specs`` or
    does not fit.
    """
    sources = {}
    for name, value in named_values(values).items():
        spec = find_spec("parameter", name, specs)
        subject = f"parameter {name!r}"
        source = array_of(as_memory(subject, value, spec.shape, stored_dtype(spec.dtype)))
        check_fit(subject, spec, source.shape, name_of(subject, source.dtype, spec.dtype))
        sources[name] = source
    where = str(host_device())
    copies = {}
    for name, source in sources.items():
        copies[name] = copied = np.empty(source.shape, source.dtype.newbyteorder("="))
        ledger.copy_array(
            copied, source, cause="set_params", tensor=name, source=where, destination=where, casting="unsafe"
        )
    return copies


def memory_of_parameters(specs: Sequence[TensorSpec], values: Mapping[str, Any]) -> dict[str, Tensor]:
    """Returns Tensors over the memory of ``values``, by name; raises InputError for a name that is not in ``specs``,
    and InputError and ZeroCopyError for memory that cannot be one of them.
    """
    named = [(find_spec("parameter", name, specs), value) for name, value in named_values(values).items()]
    return {spec.name: parameter_tensor(spec, value) for spec, value in named}


def current_parameters(executable: Executable, given: GivenParameters) -> dict[str, Tensor]:
    """Returns the values of all parameters of ``executable`` by name, read-only; those that ``given`` has are its
    copies.
    """
    now = {}
    for spec in executable.main.parameters:
        array = given.copied.get(spec.name, executable.constants[parameter_constant(spec.name)]).view()
        array.flags.writeable = False
        now[spec.name] = Tensor.from_numpy_view(array)
    return now
