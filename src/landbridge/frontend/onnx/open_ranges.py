"""Finds ranges for dimensions that a file leaves open and nobody declares: those in which the model can be run."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from typing import TypeAlias

from xdsl.dialects.builtin import TensorType

from landbridge.errors import CompileError, InputError, ShapeError, UndecidedSizeError, UnsupportedOperatorError
from landbridge.frontend.onnx.decisions import MOST_TRIED, Decisions
from landbridge.frontend.onnx.equal_sizes import question_of
from landbridge.frontend.wanted_inputs import WantedInput
from landbridge.ir.empties import Empties
from landbridge.ir.module import IRModule
from landbridge.ir.replaced_sizes import replace_sizes
from landbridge.ir.traversal import all_operations
from landbridge.ir.types import shape_of
from landbridge.sizes.expected_sizes import expected_sizes
from landbridge.sizes.question import Question
from landbridge.sizes.size import Extent, at_least, dimensions_of, undecided

#: Why a walk begins again.
_COARSE = "nodes before were built for sizes that a decision has excluded"

#: Walks the model with what was decided and the elements of inputs, by the input's name; returns the module.
Walk: TypeAlias = Callable[[Decisions, Mapping[str, tuple[Extent, ...]]], IRModule]


def in_open_ranges(walk: Walk, decisions: Decisions, empties: Empties | None = None) -> IRModule:
    """Returns the module that ``walk`` builds for the dimensions of ``decisions``: the declared ones, and ranges of all
    others.

    If ranges leave a comparison undecided, one dimension is narrowed to the widest range in which it is decided, and to
    the next one if shapes contradict each other there. If the comparison is an equality, two dimensions become one,
    also two declared ones if the model requires it. A walk decides most questions itself and goes on. An input whose
    elements are sizes gets a dimension for each element. Ranges without an expected size get one that the divisions in
    the model leave large enough. If no ranges work, raises the error of the widest ones.

    ``empties``: whether tensors may have no elements in these ranges, other than by dimensions that data decide.
    """
    empties = empties or Empties(allowed=False)
    ended: CompileError | InputError | None = None
    sizes: dict[str, WantedInput] = {}
    decisions.pending.append(decisions.specializations.begin)
    why, is_choice = "", True
    while True:
        decisions.begin(decisions.pending.pop(), why)
        decisions.tried += is_choice
        is_choice = False
        try:
            elements = {name: _elements(each, decisions.known, empties) for name, each in sizes.items()}
            module = walk(decisions, elements)
            question = _fewer(module, decisions.of_data, empties)
            if decisions.is_coarse and decisions.has_news():
                why = _COARSE
            elif question is not None and decisions.answer(question):
                why = "a tensor might have had a negative number of elements"
            else:
                return _with_expected_sizes(walk, decisions, elements, module)
            decisions.pending.append(decisions.narrowed)
        except (CompileError, InputError) as error:
            more = _sizes(error, sizes)
            if (decisions.must_restart or decisions.is_coarse) and decisions.has_news():
                why = _COARSE
            elif more:  # the ranges found so far remain valid
                sizes |= more
                why, is_choice = f"inputs {', '.join(map(repr, more))} hold sizes", True
                ended, decisions.tried = error, 0
                decisions.pending.clear()
            elif decisions.decide(error):
                why = f"outside of nodes: {_first_line(error)}"
            else:
                ended = ended or error
                if not decisions.pending or decisions.tried >= MOST_TRIED or not _is_of_a_range(error):
                    raise ended from None
                why, is_choice = f"a choice of ranges was wrong: {_first_line(error)}", True
                continue
            decisions.pending.append(decisions.narrowed)


def _with_expected_sizes(
    walk: Walk, decisions: Decisions, elements: Mapping[str, tuple[Extent, ...]], module: IRModule
) -> IRModule:
    """Returns ``module`` with expected sizes of dimensions that have none."""
    found = expected_sizes(_extents(module), decisions.fixed)
    decisions.expect(found)
    decisions.specializations.taken.append(decisions.known)
    if not found.keys().isdisjoint(decisions.weighed):
        decisions.begin(decisions.narrowed, "expected sizes decide how a node is computed")
        return walk(decisions, elements)
    if found:
        replace_sizes(module, decisions.extent)
    return module


def _first_line(error: CompileError | InputError) -> str:
    return str(error).partition("\n")[0]


def _fewer(module: IRModule, decided: Container[str], empties: Empties) -> Question | None:
    """Returns the question whether a tensor of ``module`` has elements, if that is not known and ``empties`` are not
    allowed.

    For dimensions ``decided`` by data, and for all if empty tensors are allowed, the question is whether an extent may
    be negative.
    """
    for extent in dict.fromkeys(_extents(module)):
        if at_least(extent, 1) is not None:
            continue
        low = 0 if any(name in decided for name in dimensions_of([extent])) else empties.least()
        if at_least(extent, low) is None:
            return question_of(undecided(f"{extent} >= {low}", extent, low, needed=True))
    return None


def _extents(module: IRModule) -> Iterator[Extent]:
    """Yields the extents of all values that ``module`` computes."""
    for op in all_operations(module.main):
        for result in op.results:
            yield from shape_of(result.type) if isinstance(result.type, TensorType) else ()


def _sizes(error: CompileError | InputError, known: Mapping[str, WantedInput]) -> dict[str, WantedInput]:
    """Returns the inputs, except those ``known``, whose sizes ``error`` requires; none if it requires another kind of
    value.
    """
    wanted = error.needed if isinstance(error, UnsupportedOperatorError) else None
    if not isinstance(wanted, dict) or any(each.chosen for each in wanted.values()):
        return {}
    return {name: each for name, each in wanted.items() if name not in known}


def _elements(wanted: WantedInput, known: Mapping[str, Extent], empties: Empties) -> tuple[Extent, ...]:
    least = 0 if wanted.chosen else empties.least()
    return tuple(known.get(name, extent) for name, extent in wanted.dimensions(least).items())


def _is_of_a_range(error: CompileError | InputError) -> bool:
    """Returns whether the model may compile with other ranges; a fixed size is not a range."""
    return isinstance(error, ShapeError | InputError) and not isinstance(error, UndecidedSizeError)
