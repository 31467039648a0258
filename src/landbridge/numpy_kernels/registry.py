"""The kernels by name, and how a program calls one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar, cast

import numpy as np

from landbridge.array_type import Array
from landbridge.errors import BindError
from landbridge.process.blas_threads import one_blas_thread

#: What names of kernels begin with in programs.
PREFIX = "landbridge.numpy."

Kernel = Callable[..., None]
_Kernel = TypeVar("_Kernel", bound=Kernel)

_MODULES = (
    "activations",
    "convolutions",
    "elementwise",
    "host_operators",
    "integer_products",
    "movement",
    "normalizations",
    "pooling",
    "products",
    "quantization",
    "recurrent",
    "sums",
)
_KERNELS: dict[str, Kernel] = {}


def kernel(name: str, *, multiplies: bool = False) -> Callable[[_Kernel], _Kernel]:
    """Registers the function it decorates as kernel ``name``; raises BindError where the name is taken.

    ``multiplies``: it calls numpy's BLAS, which is limited to one thread meanwhile.
    """

    def add(function: _Kernel) -> _Kernel:
        @wraps(function)
        def on_one_thread(*args: Array | None, **attributes: Any) -> None:
            with one_blas_thread:
                function(*args, **attributes)

        if name in _KERNELS:
            raise BindError(f"there are two numpy kernels {name!r}; choose another name")
        _KERNELS[name] = on_one_thread if multiplies else function
        return function

    return add


def find(name: str) -> Kernel:
    """Returns kernel ``name``, without the prefix; raises BindError where there is none."""
    if not _KERNELS:
        for module in _MODULES:
            import_module(f"landbridge.numpy_kernels.{module}")
    try:
        return _KERNELS[name]
    except KeyError:
        raise BindError(
            f"the program calls the numpy kernel {name!r}, which this version lacks; compile the model again"
        ) from None


def call(
    name: str, operands: Sequence[Array | None], destinations: Sequence[Array], attributes: Mapping[str, Any]
) -> None:
    """Runs kernel ``name``; floating-point exceptions are ignored, as compiled code ignores them."""
    function = find(name)
    with np.errstate(all="ignore"):
        function(*operands, *destinations, **attributes)


def bound(name: str, attributes: Mapping[str, object]) -> Callable[[Sequence[Array], Mapping[str, object]], None]:
    """Returns the host builtin that runs kernel ``name`` (with its prefix) on operands, then destinations.

    ``attributes`` are those of the HostCall: ``absent``, the numbers of the operands that are None, and
    ``attributes``, what the kernel takes by name.
    """
    function = find(name.removeprefix(PREFIX))
    absent = sorted(cast(Sequence[int], attributes.get("absent", ())))
    options = dict(cast(Mapping[str, Any], attributes.get("attributes", {})))

    def run(args: Sequence[Array], _: Mapping[str, object]) -> None:
        operands: list[Array | None] = list(args)
        for number in absent:
            operands.insert(number, None)
        with np.errstate(all="ignore"):
            function(*operands, **options)

    return run
