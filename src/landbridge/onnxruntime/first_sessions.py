"""Sessions of first programs, one for each choice of sizes, while the program for all sizes is compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from landbridge.compiler.background_compile import BackgroundCompile
from landbridge.first_tier.program import FirstPrograms
from landbridge.frontend.onnx.anonymous_dimensions import ANONYMOUS
from landbridge.onnxruntime.lru_cache import Retained
from landbridge.onnxruntime.model_facts import NodeArg
from landbridge.process.locks import new_lock
from landbridge.session import Session
from landbridge.targets import Target

#: Sessions that are retained. Each has memory of its own for results in between; constants they share.
_RETAINED = 4


class FirstSessions:
    """Sessions of ``model``, whose ``inputs`` have open extents, until ``pending`` is over; any thread may use them.

    ``dims``: what open dimensions are always, by name.
    ``threads``: how many each Session may use, as ``Session`` takes it.
    """

    def __init__(
        self,
        model: bytes | Path,
        inputs: Sequence[NodeArg],
        dims: Mapping[str, int],
        pending: BackgroundCompile,
        threads: int | None,
    ) -> None:
        #: The compile of the program for all sizes.
        self.pending = pending
        self._model, self._inputs, self._dims, self._threads = model, inputs, dims, threads
        self._programs: FirstPrograms | None = None
        self._lock = new_lock()
        self._by_shapes: Retained[tuple[tuple[int, ...], ...], Session | None] = Retained(_RETAINED)

    def session_for(self, shapes: Mapping[str, tuple[int, ...]]) -> Session | None:
        """Returns a Session of a first program; None where the first tier cannot make one, and where extents of one
        name differ, of which the full program has the error.
        """
        if not self._agree(shapes):
            return None
        return self._by_shapes.get(tuple(shapes.values()), lambda: self._created(shapes), lambda: None)

    def _created(self, shapes: Mapping[str, tuple[int, ...]]) -> Session | None:
        with self._lock:
            if self._programs is None:
                self._programs = FirstPrograms(self._model, Target("llvm"), self._dims)
        first = self._programs.at(shapes)
        return None if first is None else Session(first, num_threads=self._threads)

    def _agree(self, shapes: Mapping[str, tuple[int, ...]]) -> bool:
        """Returns whether each name of a dimension has one extent in ``shapes``."""
        extents: dict[str, int] = {}
        return all(
            extents.setdefault(declared, extent) == extent
            for value in self._inputs
            for declared, extent in zip(value.shape, shapes[value.name], strict=False)
            if isinstance(declared, str) and declared not in ANONYMOUS
        )
