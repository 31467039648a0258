"""Finds ranges for dimensions that a file leaves open and nobody declares: those in which the model can be run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from xdsl.dialects.builtin import TensorType

from landbridge.errors import CompileError, InputError, ShapeError, UndecidedSizeError, UnsupportedOperatorError
from landbridge.frontend.onnx.equal_sizes import EqualSizes, question_of, resolved, solved
from landbridge.frontend.wanted_inputs import WantedInput
from landbridge.ir.empties import Empties
from landbridge.ir.module import IRModule
from landbridge.ir.types import shape_of
from landbridge.records import record
from landbridge.sizes.dim import identifier
from landbridge.sizes.expected_sizes import expected_sizes
from landbridge.sizes.question import Question
from landbridge.sizes.settle import Settled, settled
from landbridge.sizes.size import Extent, at_least, dimensions_of, least, never_below, of_symbol, undecided
from landbridge.sizes.terms import Symbol, symbols

#: The most choices of ranges that are tried.
_MOST_TRIED = 16

#: Narrowed dimensions by name: ranges, numbers, or expressions of other dimensions.
_Narrowed: TypeAlias = Mapping[str, Extent]
#: Builds a module, given dimensions by name and the elements of inputs by the input's name.
Build: TypeAlias = Callable[[Mapping[str, Extent], Mapping[str, tuple[Extent, ...]]], IRModule]


def in_open_ranges(
    build: Build,
    declared: Mapping[str, Extent],
    decided: Container[str] = (),
    specializations: Specializations | None = None,
    fixing: list[str] | None = None,
    empties: Empties | None = None,
    unified: UnifiedDimensions | None = None,
    equal: EqualSizes | None = None,
) -> IRModule:
    """Returns the module that ``build`` returns for dimensions by name: the ``declared`` ones, and ranges of all
    others.

    If ranges leave a comparison undecided, one dimension is narrowed to the widest range in which it is decided, and to
    the next one if shapes contradict each other there. If the comparison is an equality, two dimensions become one,
    also two ``declared`` ones if the model requires it. An input whose elements are sizes gets a dimension for each
    element. Ranges without an expected size get one that the divisions in the model leave large enough. If no ranges
    work, raises the error of the widest ones.

    ``specializations`` contains the ranges to begin with, and collects those for which the model computes something
    else. ``fixing``: if not None, collects dimensions that would have to be a single number for others to be open;
    those ranges are not tried. ``empties``: whether tensors may have no elements in these ranges, other than by
    dimensions in ``decided``, which data decide. ``unified``: pairs of dimensions that may be unified if only single
    numbers would fit otherwise, and if that is allowed; ``build`` may write them. ``equal``: receives the equalities
    that ``build`` finds; it then raises an error at its end.
    """
    specializations, empties, unified = (
        specializations or Specializations(),
        empties or Empties(allowed=False),
        unified or UnifiedDimensions(),
    )
    equal = equal or EqualSizes()
    declared = {identifier(name): each for name, each in declared.items()}
    fixed = dimensions_of(declared.values())
    ended: CompileError | InputError | None = None
    sizes: dict[str, WantedInput] = {}
    pending: list[_Narrowed] = [specializations.begin]
    tried = 0

    def narrow(question: Question | None) -> list[Settled]:
        ranges = [] if question is None else _ranges(question, fixed, fixing)
        if question is not None and question.equal and question.needed:  # no program is only for data that are empty
            ranges = [each for each in ranges if each.extent != 0 or each.name not in decided]
        if (
            question is not None
            and fixing is not None
            and not unified.allowed
            and _joined(question, ranges, unified, fixed, decided)
        ):
            unified.might = True
            return []
        found = [{**narrowed, each.name: each.extent} for each in ranges]
        pending.extend(reversed(found))
        if question is not None and not question.needed:
            specializations.seen += found
        if question is not None and question.fills:
            specializations.windows.append((narrowed, Question(question.difference)))
        return ranges

    while True:
        narrowed, tried = pending.pop(), tried + 1
        known = resolved({**declared, **narrowed})
        equal.begin(fixed, decided)
        try:
            elements = {name: _elements(each, known, empties) for name, each in sizes.items()}
            module = build(known, elements)
            if not narrow(_fewer(module, decided, empties)) or tried == _MOST_TRIED:
                found = expected_sizes(_extents(module), fixed)
                planned = resolved({**known, **found})
                specializations.taken.append(planned)
                return build(planned, elements) if found else module
        except (CompileError, InputError) as error:
            if equal.has_more:
                if equal.requested is not None and equal.found.items() <= narrowed.items():
                    # the dimensions belong to the enclosing program, which has to unify them
                    raise equal.requested from None
                specializations.broadcast |= equal.broadcasts
                pending.append({**narrowed, **equal.found})
                tried -= 1  # not counted: there are at most as many as dimensions
                continue
            more = _sizes(error, sizes)
            if more:  # the ranges found so far remain valid
                sizes |= more
                ended, pending, tried = error, [narrowed], 0
                continue
            question = question_of(error)
            ranges = narrow(question)
            specializations.broadcast |= question is not None and question.broadcasts and bool(ranges)
            one = None if question is None or ranges else solved(question, fixed, decided)
            joined = (
                {}
                if question is None or one or not unified.allowed
                else _joined(question, ranges, unified, fixed, decided)
            )
            if one:
                pending.append({**narrowed, **one})
            elif joined:
                pending.append({**narrowed, **joined})
            elif not ranges:
                ended = ended or error
            if not pending or tried == _MOST_TRIED or not (ranges or one or joined or _is_of_a_range(error)):
                raise ended or error from None


@record
class UnifiedDimensions:
    """``pairs`` of dimensions that occur along the same axis of inputs, by name. ``allowed``: they may be unified.
    ``might``: it would have helped, but was not allowed.
    """

    pairs: Collection[tuple[str, str]] = ()
    allowed: bool = False
    might: bool = False


@record
class Specializations:
    """The specializations of a model for different ranges of sizes: ``taken`` has the dimensions of each, by name.

    ``seen``: ranges in which a comparison has one of two legal results. ``begin``: the ranges that a search begins
    with. ``broadcast``: dimensions were unified that may differ in a run if one of them is 1. ``windows``: the
    dimensions for which it was undecided whether the window of a pool fits, each with the comparison.
    """

    taken: list[Mapping[str, Extent]] = field(default_factory=list)
    seen: list[_Narrowed] = field(default_factory=list)
    begin: _Narrowed = field(default_factory=dict)
    broadcast: bool = False
    windows: list[tuple[_Narrowed, Question]] = field(default_factory=list)

    def without_windows(self, fixed: Collection[str]) -> list[_Narrowed]:
        """Returns the ranges in which the window of a pool does not fit, without changing the dimensions ``fixed``."""
        return [
            {**narrowed, each.name: each.extent}
            for narrowed, question in self.windows
            for each in settled(question, fixed)
            if not each.answer
        ]

    def others(self) -> Iterator[_Narrowed]:
        """Yields, once each, the ranges of ``seen`` that no specialization covers at that time; ``seen`` may grow in
        the meantime.
        """
        for i, each in enumerate(self.seen):
            known = resolved(each)
            if each not in self.seen[:i] and not any(_overlap(known, specialization) for specialization in self.taken):
                yield each


def _overlap(one: Mapping[str, Extent], other: Mapping[str, Extent]) -> bool:
    """Returns whether both have sizes in common, judged by the ends of their ranges."""
    ends = ((_ends(one[name]), _ends(other[name])) for name in one.keys() & other.keys())
    return all(low <= last and first <= high for (low, high), (first, last) in ends)


def _ends(extent: Extent) -> tuple[int, int]:
    return (extent, extent) if isinstance(extent, int) else (least(extent), never_below(extent))


def _ranges(question: Question, fixed: Collection[str], fixing: list[str] | None) -> list[Settled]:
    """Returns ``settled``; if ``fixing`` is not None, a comparison of several dimensions only yields ranges of more
    than one size.
    """
    found = settled(question, fixed)
    if fixing is None or question.equal or len(symbols(question.difference)) < 2:
        return found
    fixing += [each.name for each in found if isinstance(each.extent, int)]
    return [each for each in found if not isinstance(each.extent, int)]


def _joined(
    question: Question,
    ranges: Sequence[Settled],
    unified: UnifiedDimensions,
    fixed: Collection[str],
    decided: Container[str],
) -> _Narrowed:
    """Returns the dimensions of a comparison that become others, because these are ``unified`` with them; not those in
    ``fixed``.

    The comparison is an equality, or an order that is required, such as indices that are at most as long as the data:
    equal extents satisfy it, also extents that are not ``unified``. Returns nothing if ``ranges`` has a range of more
    than one size. Of two sums, addends of one side become those of the other, as past and present keys become those of
    values.
    """
    if not (question.equal or question.needed) or any(not isinstance(each.extent, int) for each in ranges):
        return {}
    requested = symbols(question.difference)
    signs = {
        product[0][0].name: number
        for product, number in question.difference
        if len(product) == 1 and isinstance(product[0][0], Symbol)
    }
    found: dict[str, Extent] = {}
    for a, b in unified.pairs:
        is_pair = a != b and a in requested and b in requested and b not in fixed and not {a, b} & found.keys()
        if (
            is_pair
            and (len(signs) < len(requested) or signs[a] == -signs[b])
            and of_symbol(requested[a]) not in found.values()
        ):
            found[b] = of_symbol(requested[a])
    if not found and not question.equal:
        return solved(Question(question.difference, equal=True), fixed, decided) or {}
    return found


def _fewer(module: IRModule, decided: Container[str], empties: Empties) -> Question | None:
    """Returns the question whether a tensor of ``module`` has elements, if that is not known and ``empties`` are not
    allowed.

    For dimensions ``decided`` by data, and for all if empty tensors are allowed, the question is whether an extent may
    be negative.
    """
    for extent in _extents(module):
        if at_least(extent, 1) is not None:
            continue
        low = 0 if any(name in decided for name in dimensions_of([extent])) else empties.least()
        if at_least(extent, low) is None:
            return question_of(undecided(f"{extent} >= {low}", extent, low, needed=True))
    return None


def _extents(module: IRModule) -> Iterator[Extent]:
    """Yields the extents of all values that ``module`` computes."""
    for op in module.main.walk():
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
