"""The table of implementations, by kind, (domain, type) and first opset version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

from landbridge.errors import BindError, CompileError, UnsupportedOperatorError
from landbridge.operators.implementations import (
    HOST_PREFIX,
    Definition,
    HostOperator,
    Implementation,
    Kernel,
    is_built_in,
)
from landbridge.plugins import import_modules
from landbridge.text.did_you_mean import did_you_mean

_Kind = TypeVar("_Kind", bound=Implementation)
_Versions: TypeAlias = dict[int, Any]


class OperatorRegistry:
    """Holds the implementations of operators by kind (``Kernel``, ``Definition``, ``HostOperator``), domain, type and
    first opset version.

    ``families`` maps each kind to the package of its implementations, in order of preference: a node is given to the
    first kind that implements its operator. Where that raises UnsupportedOperatorError, the importer may call the host
    operator. The modules of a package register what they contain. They are imported when an implementation of their
    kind is first looked up, since each kind needs other libraries, and a run needs only host operators.
    """

    def __init__(self, families: Mapping[type[Any], str]) -> None:
        self._families = dict(families)
        self._imported: set[type[Any]] = set()
        self._known: dict[type[Any], dict[tuple[str, str], _Versions]] = {kind: {} for kind in families}

    def add(self, implementation: Implementation) -> None:
        """Registers ``implementation``; the same function again, of a module that is imported again, replaces it.

        Raises CompileError where another function implements that version of the operator as the same kind.
        """
        versions = self._known[type(implementation)].setdefault((implementation.domain, implementation.op_type), {})
        before = versions.get(implementation.since)
        if before is not None and _location(before) != _location(implementation):
            raise CompileError(
                f"two {implementation.NOUN}s for {_full_name(implementation.domain, implementation.op_type)} since "
                f"opset {implementation.since}: {_location(before)} and {_location(implementation)}; give one another "
                "`since`"
            )
        versions[implementation.since] = implementation

    def find(self, kind: type[_Kind], domain: str, op_type: str, opset: int) -> _Kind | None:
        """Returns the newest implementation of ``kind`` that is not newer than ``opset``; None where there is none."""
        self._import(kind)
        versions: Mapping[int, _Kind] = self._known[kind].get((own_domain(domain), op_type), {})
        legal = [since for since in versions if since <= opset]
        return versions[max(legal)] if legal else None

    def find_all(self, domain: str, op_type: str, opset: int) -> list[Implementation]:
        """Returns the implementation of each kind that has one for ``opset``, in order of preference."""
        found: list[Implementation | None] = [self.find(kind, domain, op_type, opset) for kind in self._families]
        return [each for each in found if each is not None]

    def of_kind(self, kind: type[_Kind]) -> list[_Kind]:
        """Returns every implementation of ``kind``, sorted by domain, type and first version."""
        self._import(kind)
        known = self._known[kind]
        return [known[key][since] for key in sorted(known) for since in sorted(known[key])]

    def of_others(self) -> list[Implementation]:
        """Returns the implementations that are not of this package; imports nothing."""
        known = [versions for of_kind in self._known.values() for versions in of_kind.values()]
        return [each for versions in known for each in versions.values() if not is_built_in(each)]

    def called(self, name: str, module: str = "") -> HostOperator | None:
        """Returns the host operator that compiled programs call ``name``; None where ``name`` is not that of a host
        operator.

        Raises BindError where it is not registered in this process. ``module`` is the module that registered it for the
        compile, which the error names.
        """
        if not name.startswith(HOST_PREFIX):
            return None
        for operator in self.of_kind(HostOperator):
            if operator.name == name:
                return operator
        where = f", as {module} did when it was compiled: import that" if module else ""
        raise BindError(
            f"the program needs the host operator {name.removeprefix(HOST_PREFIX)!r}, which is not registered in this "
            f"process; register its function with landbridge.host_operator before the Session is made{where}"
        )

    def nothing_implements(self, domain: str, op_type: str, opset: int, node: str) -> UnsupportedOperatorError:
        """Returns the error for ``node``, whose operator has no implementation. Its text says from which opset there is
        one, or which names are similar, and how to add one, the first choice first.
        """
        domain = own_domain(domain)
        for kind in self._families:
            self._import(kind)
        known = [key for of_kind in self._known.values() for key in of_kind]
        versions = sorted({since for of_kind in self._known.values() for since in of_kind.get((domain, op_type), {})})
        if versions:
            hint = f"; it is implemented from opset {versions[0]} on"
        else:
            hint = did_you_mean(op_type, sorted({name for of, name in known if of == domain}))
        return UnsupportedOperatorError(
            f"operator {_full_name(domain, op_type)} (opset {opset}) of node {node!r} has no implementation{hint}: "
            "define it by operators of ONNX with landbridge.operators.definition; if none express it, write a kernel "
            "with landbridge.operators.kernel, or a numpy function with landbridge.host_operator; or rewrite the model "
            "without it"
        )

    @contextmanager
    def isolated(self) -> Iterator[None]:
        """Has, in the ``with`` block, only this package's own implementations and those that the block registers.

        When it ends, the implementations of others that were there before are back, and those of the block are gone.
        For tests, in one thread.
        """
        for kind in self._families:
            self._import(kind)
        before = self._known
        self._known = {
            kind: {
                key: {since: each for since, each in versions.items() if is_built_in(each)}
                for key, versions in known.items()
            }
            for kind, known in before.items()
        }
        try:
            yield
        finally:
            self._known = before

    def _import(self, kind: type[Any]) -> None:
        """Imports every module of the package of ``kind``, once."""
        if kind not in self._imported:
            import_modules(self._families[kind])
            self._imported.add(kind)


def own_domain(domain: str) -> str:
    """Returns ``domain``; ``""`` for ``"ai.onnx"``, the other name of ONNX's own domain."""
    return "" if domain == "ai.onnx" else domain


def _full_name(domain: str, op_type: str) -> str:
    return f"{domain or 'ai.onnx'}.{op_type}"


def _location(implementation: Implementation) -> str:
    return f"{implementation.function.__module__}.{implementation.function.__qualname__}"


#: Every operator that is known in this process.
REGISTRY = OperatorRegistry(
    {
        Kernel: "landbridge.ops",
        Definition: "landbridge.frontend.onnx.bodies",
        HostOperator: "landbridge.host_operators",
    }
)
