"""Emits a nest of loops over several dimensions."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence

from xdsl.ir import SSAValue

from landbridge.passes.lower.code import Code, Index
from landbridge.passes.lower.nest import Nest


def loops_around(
    code: Code, nest: Nest, dims: Sequence[int], env: MutableMapping[int, Index], body: Callable[[], None]
) -> None:
    """Emit ``body`` inside loops over ``dims`` of ``nest``, the first outermost; inside, ``env`` contains their
    indices.
    """
    if not dims:
        body()
        return

    def iteration(i: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
        env[dims[0]] = i
        loops_around(code, nest, dims[1:], env, body)
        return []

    code.loop(0, nest.dims[dims[0]].extent, 1, [], iteration)
    del env[dims[0]]
