"""Host operators in a program: calls of the numpy function, with results in planned memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from landbridge.dtypes import dtype_name
from landbridge.errors import BindError, LandbridgeError, ShapeError
from landbridge.memory import ledger
from landbridge.numpy_kernels.registry import PREFIX, bound, find
from landbridge.operators import REGISTRY, Array, HostOperator
from landbridge.operators.implementations import HOST_PREFIX, is_built_in
from landbridge.vm.builtins import Builtin, find_builtin


class HostFunction:
    """The function that a program calls ``name``, with the node's ``attributes``, and which inputs it leaves out.

    Raises BindError where nothing of that name is registered in this process.
    """

    def __init__(self, name: str, attributes: Mapping[str, object]) -> None:
        module = str(attributes.get("module", ""))
        operator = REGISTRY.called(name, module)
        if operator is None:
            raise BindError(f"{name!r} is not a host operator; compile the model again")
        self.operator: HostOperator = operator
        self._absent = frozenset(cast(Sequence[int], attributes.get("absent", ())))
        self._function = operator.bound(cast(Mapping[str, Any], attributes.get("attributes", {})))

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        """Returns the results, C-contiguous, for the inputs that the node has, in order; it does not write inputs."""
        given = iter([_read_only(array) for array in arrays])
        count = len(arrays) + len(self._absent)
        operands = [None if i in self._absent else next(given) for i in range(count)]
        try:
            results = self._function(*operands)
        except (ValueError, IndexError) as error:
            if not is_built_in(self.operator) or isinstance(error, LandbridgeError):
                raise
            shapes = ", ".join("-" if x is None else str(x.shape) for x in operands)
            raise ShapeError(
                f"{self.operator.op_type} cannot take these operands, of shapes {shapes}: {error}"
            ) from error
        return [each if each.flags.c_contiguous else each.copy("C") for each in results]


def host_function(name: str, attributes: Mapping[str, object]) -> Builtin:
    """Returns the function that a program calls ``name``: a host operator or numpy kernel with ``attributes``, or a
    builtin.

    Raises BindError where there is none.
    """
    if name.startswith(PREFIX):
        return bound(name, attributes)
    return _in_planned_memory(name, attributes) if name.startswith(HOST_PREFIX) else find_builtin(name)


def is_known(name: str) -> bool:
    """Returns whether ``host_function`` finds ``name``: a host operator that is registered here, a numpy kernel, or a
    builtin.
    """
    try:
        if name.startswith(PREFIX):
            return find(name.removeprefix(PREFIX)) is not None
        return REGISTRY.called(name) is not None or find_builtin(name) is not None
    except BindError:
        return False


def _in_planned_memory(name: str, attributes: Mapping[str, object]) -> Builtin:
    """Returns the host builtin that calls a host operator and copies its results to their memory."""
    function, node = HostFunction(name, attributes), str(attributes.get("node", ""))
    inputs = cast(int, attributes.get("inputs", 0))

    def run(args: Sequence[Array], _: Mapping[str, object]) -> None:
        results = function(args[:inputs])
        destinations = args[inputs:]
        for number, location in enumerate(destinations):
            found = results[number] if number < len(results) else None
            if found is None or (found.shape, dtype_name(found.dtype)) != (location.shape, dtype_name(location.dtype)):
                text = "nothing" if found is None else f"{dtype_name(found.dtype)} of shape {found.shape}"
                raise ShapeError(
                    f"node {node!r}: the host operator {function.operator.op_type} gave {text} as output {number}, and "
                    f"{dtype_name(location.dtype)} of shape {location.shape} was planned; state results= of its "
                    "host_operator, with None for an extent that the data decide"
                )
            ledger.copy_array(
                location,
                found,
                cause="host_operator",
                tensor=node,
                source="cpu:0",
                destination="cpu:0",
            )

    return run


def _read_only(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view
