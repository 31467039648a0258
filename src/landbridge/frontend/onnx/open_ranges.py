"""Ranges of the dimensions that a file leaves open, where nobody states them: those that the model can be run in."""

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

#: Ranges that are tried.
_MOST_TRIED = 16

#: What dimensions were narrowed to by name: ranges, numbers, or what they are made of others.
_Narrowed: TypeAlias = Mapping[str, Extent]
#: Makes a module of dimensions by name, and of elements of inputs by the names of these.
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
    """What ``build`` makes of dimensions by name: of ``declared``, which stay, and of ranges of others.

    A question that these leave open narrows one of them to the widest range in which it has an answer, to the next
    one where shapes contradict each other in that; where it asks whether two of them are equal, they become one, also
    two of ``declared`` where the model demands it. An input whose elements are sizes gets a dimension for each. A range
    of which nobody says a likely value has one that the model's divisions leave enough of. Where no range is found,
    raises what the widest ones ended in. ``specializations``
    says where to begin, and learns in which other ranges the model goes another way. ``fixing``, where given, gets the
    names of dimensions that would be one number for others to be as wide as they are, and these ranges are not tried.
    ``empties``: whether ranges are those in which all tensors have elements, but what data make, or others too.
    ``unified``: dimensions that are tried as one, if that is allowed, where shapes fit so and otherwise for single
    numbers alone, which are tried where ``fixing`` is none; ``build`` may write its pairs. ``equal``: where ``build``
    writes equalities that dimensions follow from, of which it raises an error at its end.
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
        if question is not None and question.equal and question.needed:  # no program is for data that decide on nothing
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
                    raise equal.requested from None  # of dimensions of the program around, which takes them as equal
                specializations.broadcast |= equal.broadcasts
                pending.append({**narrowed, **equal.found})
                tried -= 1  # there are no more of these than dimensions
                continue
            more = _sizes(error, sizes)
            if more:  # all that was found of ranges holds without it
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
    """``pairs`` of dimensions that inputs have along the same axis, by name. ``allowed``: they may become one.
    ``might``: some would have, where it was not allowed."""

    pairs: Collection[tuple[str, str]] = ()
    allowed: bool = False
    might: bool = False


@record
class Specializations:
    """The ways that a model goes for sizes of other ranges: ``taken``, what dimensions are in each by name.

    ``seen``: ranges in which a question that leaves two ways has an answer. ``begin``: where a search begins.
    ``broadcast``: dimensions became one that may differ in a run where one of them is 1. ``windows``:
    what dimensions were where it was asked whether a window of a pool fits, and the question.
    """

    taken: list[Mapping[str, Extent]] = field(default_factory=list)
    seen: list[_Narrowed] = field(default_factory=list)
    begin: _Narrowed = field(default_factory=dict)
    broadcast: bool = False
    windows: list[tuple[_Narrowed, Question]] = field(default_factory=list)

    def without_windows(self, fixed: Collection[str]) -> list[_Narrowed]:
        """Returns the ranges in which a window of a pool does not fit, but of dimensions called ``fixed``."""
        return [
            {**narrowed, each.name: each.extent}
            for narrowed, question in self.windows
            for each in settled(question, fixed)
            if not each.answer
        ]

    def others(self) -> Iterator[_Narrowed]:
        """The ranges of ``seen``, which may grow meanwhile, that no way taken by then has sizes of, each once."""
        for i, each in enumerate(self.seen):
            known = resolved(each)
            if each not in self.seen[:i] and not any(_overlap(known, way) for way in self.taken):
                yield each


def _overlap(one: Mapping[str, Extent], other: Mapping[str, Extent]) -> bool:
    """Whether there are sizes that are in both of these ranges by the ends of them."""
    ends = ((_ends(one[name]), _ends(other[name])) for name in one.keys() & other.keys())
    return all(low <= last and first <= high for (low, high), (first, last) in ends)


def _ends(extent: Extent) -> tuple[int, int]:
    return (extent, extent) if isinstance(extent, int) else (least(extent), never_below(extent))


def _ranges(question: Question, fixed: Collection[str], fixing: list[str] | None) -> list[Settled]:
    """``settled``, without ranges of one number in which a comparison holds where ``fixing`` is to list them."""
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
    """The dimensions of an equality, but those called ``fixed``, that others of it are ``unified``, each with the
    other; none where ``ranges`` has one of more than a number for it. Likewise of an order that is needed, as of
    indices that are at most as long as the data: equal extents have it, also of others than those ``unified``.

    Of two sums those that are added on one side become those on the other: past and present keys those of values.
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
    """Whether a tensor of ``module`` has elements, where that is not known and ``empties`` are not allowed. Of what
    dimensions ``decided`` by data make, and of all where they are, whether nothing is below 0."""
    for extent in _extents(module):
        if at_least(extent, 1) is not None:
            continue
        low = 0 if any(name in decided for name in dimensions_of([extent])) else empties.least()
        if at_least(extent, low) is None:
            return question_of(undecided(f"{extent} >= {low}", extent, low, needed=True))
    return None


def _extents(module: IRModule) -> Iterator[Extent]:
    """Those of all that ``module`` computes."""
    for op in module.main.walk():
        for result in op.results:
            yield from shape_of(result.type) if isinstance(result.type, TensorType) else ()


def _sizes(error: CompileError | InputError, known: Mapping[str, WantedInput]) -> dict[str, WantedInput]:
    """The inputs, but for those ``known``, that ``error`` wants the sizes of; none where another is chosen by."""
    wanted = error.needed if isinstance(error, UnsupportedOperatorError) else None
    if not isinstance(wanted, dict) or any(each.chosen for each in wanted.values()):
        return {}
    return {name: each for name, each in wanted.items() if name not in known}


def _elements(wanted: WantedInput, known: Mapping[str, Extent], empties: Empties) -> tuple[Extent, ...]:
    least = 0 if wanted.chosen else empties.least()
    return tuple(known.get(name, extent) for name, extent in wanted.dimensions(least).items())


def _is_of_a_range(error: CompileError | InputError) -> bool:
    """Whether the model may be built in another range; what wants a number is in none."""
    return isinstance(error, ShapeError | InputError) and not isinstance(error, UndecidedSizeError)
