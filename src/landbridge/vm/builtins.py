"""Host builtins: operators that run as Python functions, not as compiled code (``HostCall``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from landbridge.array_type import Array
from landbridge.errors import BindError, ShapeError
from landbridge.executable.access_report import ACCESS_CHECK, CLEAR_REPORT
from landbridge.executable.instructions import INDEX_CHECK, REFUSED_BRANCH
from landbridge.vm.kernel_checks import check_accesses, check_indices, clear_report

#: A function of the arguments as arrays over their memory (inputs, then destinations) and of the attributes.
Builtin = Callable[[Sequence[Array], Mapping[str, object]], None]


def refuse_branch(args: Sequence[np.ndarray[Any, Any]], attributes: Mapping[str, object]) -> None:
    """Raises ShapeError for a branch that was not compiled; ``why`` gives the reason."""
    raise ShapeError(f"the run takes a branch that was not compiled: {attributes['why']}")


_BUILTINS: dict[str, Builtin] = {
    INDEX_CHECK: check_indices,
    ACCESS_CHECK: check_accesses,
    CLEAR_REPORT: clear_report,
    REFUSED_BRANCH: refuse_branch,
}


def register_builtin(name: str, function: Builtin) -> None:
    """Register ``function`` as the host builtin ``name``; raises BindError when the name is taken."""
    if _BUILTINS.setdefault(name, function) is not function:
        raise BindError(f"the host builtin {name!r} is registered already; choose another name")


def find_builtin(name: str) -> Builtin:
    """Returns the host builtin ``name``; raises BindError that names the known ones."""
    try:
        return _BUILTINS[name]
    except KeyError:
        known = ", ".join(sorted(_BUILTINS)) or "none"
        raise BindError(
            f"the program calls the host builtin {name!r}; known here: {known}; "
            "register it with landbridge.vm.builtins.register_builtin"
        ) from None
