"""Decisions: what the walks of one model have decided about its open dimensions, so that they can go on."""

from __future__ import annotations

from collections.abc import Collection, Container, KeysView, Mapping, Sequence
from dataclasses import field

from landbridge.errors import UndecidedSizeError
from landbridge.frontend.onnx.equal_sizes import question_of, resolved, solved
from landbridge.frontend.onnx.specializations import Narrowed, Specializations
from landbridge.ir.graph_builder import Broadcasting
from landbridge.ir.iteration_numbers import is_iteration
from landbridge.ir.length_ops import is_length
from landbridge.ir.permissions import Permission, Permissions
from landbridge.records import record
from landbridge.sizes.question import Question
from landbridge.sizes.replaced import replaced, with_atoms
from landbridge.sizes.settle import Settled, settled
from landbridge.sizes.size import Extent, Size, dimensions_of, extent_of, of_symbol
from landbridge.sizes.terms import ZERO, AboveZero, Clamped, Symbol, add, all_atoms, of_atom, scale, symbols

#: The most choices of ranges that begin another walk.
MOST_TRIED = 16
#: The most questions that one walk decides by ranges.
MOST_DECIDED = 1 << 10


@record
class Decisions:
    """What has been decided of open dimensions: ``narrowed`` has ranges, numbers and expressions of others, by name.

    A question that the ``declared`` ranges leave open narrows a dimension, or makes it an expression of others, and the
    walk goes on. ``pending`` has the choices that are left, the next one last; each is the beginning of another walk,
    for the case that the model turns out to be wrong for the ranges that were chosen. ``tried`` counts those that were.

    ``of_data``: dimensions that data decide. ``is_body``: the declared dimensions are those of the enclosing program,
    which decides them.
    ``specializations`` collects the ranges for which the model computes something else. ``permissions``: whether a
    dimension may have one size, so that others may be open, and whether ``pairs`` of dimensions, which occur along the
    same axis of inputs, may be unified where only single numbers would fit otherwise. ``broadcasting``: learns which of
    two extents is the larger one.

    ``decided``: how many questions this walk has decided by ranges. ``changed``: the names that were narrowed since it
    began. ``inner``: the dimensions that a node has unified inside of its graphs, until it is imported again.
    ``must_restart``: the walk cannot go on with what was decided.
    ``is_coarse``: a narrowing has decided a minimum or a maximum, or made an extent a number, in what was built before:
    another walk builds less. ``weighed``: dimensions whose expected sizes decided how something is computed. ``why``:
    the reason of this walk, if it is not the first.
    """

    declared: Mapping[str, Extent] = field(default_factory=dict)
    of_data: Container[str] = frozenset()
    is_body: bool = False
    specializations: Specializations = field(default_factory=Specializations)
    permissions: Permissions = field(default_factory=lambda: Permissions({Permission.FIX}))
    broadcasting: Broadcasting = field(default_factory=Broadcasting)
    narrowed: Narrowed = field(default_factory=dict)
    pending: list[Narrowed] = field(default_factory=list)
    tried: int = 0
    decided: int = 0
    changed: set[str] = field(default_factory=set)
    inner: dict[str, Extent] = field(default_factory=dict)
    must_restart: bool = False
    is_coarse: bool = False
    weighed: Collection[str] = ()
    why: str = ""
    pairs: Collection[tuple[str, str]] = ()
    _known: dict[str, Extent] | None = None
    _began: tuple[Narrowed, int] = ({}, 0)

    @property
    def known(self) -> dict[str, Extent]:
        """Returns the dimensions by name, each in terms of dimensions that stay."""
        if self._known is None:
            self._known = resolved({**self.declared, **self.narrowed})
        return self._known

    @property
    def fixed(self) -> KeysView[str]:
        """Returns the names of dimensions whose ranges are declared."""
        return dimensions_of(self.declared.values()).keys()

    def begin(self, narrowed: Narrowed, why: str = "") -> None:
        """Begin a walk with the dimensions ``narrowed``; ``why`` it is needed, if it is not the first."""
        self.why = why
        self.narrowed, self._known = narrowed, None
        self._began = narrowed, len(self.broadcasting.known)
        self.changed, self.inner, self.must_restart, self.is_coarse = set(), {}, False, False
        self.decided = 0

    def has_news(self) -> bool:
        """Returns whether another walk would begin with more than this one has; takes what a node has unified."""
        self.take_inner()
        return self._began != (self.narrowed, len(self.broadcasting.known))

    def decide(self, error: BaseException) -> bool:
        """Decide the question that ``error`` asks; returns whether that was possible."""
        question = question_of(error)
        return question is not None and self.answer(question)

    def answer(self, question: Question) -> bool:
        """Decide ``question``: narrow one of its dimensions to the widest range that does, or make two equal.

        Returns False if neither is possible, or if the walk has decided too many.
        """
        if self._is_one_of_two(question):
            self.must_restart = True
            return True
        ranges = self._ranges(question)
        if ranges and self.decided >= MOST_DECIDED:
            return False
        others = [{**self.narrowed, each.name: each.extent} for each in ranges]
        if not question.needed:
            self.specializations.seen += others
        if ranges and question.fills:
            self.specializations.windows.append((self.narrowed, Question(question.difference)))
        change: Narrowed = (not ranges and solved(question, self.fixed, self.of_data)) or {}
        if not change and Permission.UNIFY in self.permissions.granted:
            change = self._unified(question, ranges)
        if not change and others:
            change = {ranges[0].name: ranges[0].extent}
            del others[0]
        if not change or not self._may_change(change):
            return False
        self.decided += bool(ranges)
        self.pending.extend(reversed(others))
        self.specializations.broadcast |= question.broadcasts
        self._change(change)
        return True

    def expect(self, expected: Mapping[str, Extent]) -> None:
        """Give dimensions their ``expected`` sizes; their ranges stay."""
        self._change(expected)

    def unify(self, error: UndecidedSizeError) -> bool:
        """Decide an equality that ``error`` requires inside of a graph of a node; returns whether that was possible.

        Then ``extent`` applies it to the rest of the node, which is imported again when it ends.
        """
        question = question_of(error)
        if question is None or not question.equal or len(symbols(question.difference)) < 2:
            return False
        if self._is_one_of_two(question):
            self.must_restart = True
            return True
        if settled(question, self.fixed):
            return False
        more = solved(question, self.fixed, self.of_data)
        if not more or not more.keys() - self.inner.keys() or not self._may_change(more):
            return False
        self.inner = resolved({**self.inner, **more})
        self.specializations.broadcast |= question.broadcasts
        return True

    def take_inner(self) -> None:
        """Narrow the dimensions that were unified inside of a node."""
        inner, self.inner = self.inner, {}
        self._change(inner)

    def extent(self, extent: Extent) -> Extent:
        """Returns ``extent`` in terms of the dimensions as they are now."""
        found = self._now(extent)
        if isinstance(extent, Size) and found != extent:
            self.is_coarse |= not isinstance(found, Size) or _choices(found) < _choices(extent)
        return found

    def _now(self, extent: Extent) -> Extent:
        if not isinstance(extent, Size):
            return extent
        if self.broadcasting.known:
            extent = with_atoms(extent.terms, self.broadcasting.known)
        for names, values in ((self.changed, self.known), (self.inner.keys(), self.inner)):
            if isinstance(extent, Size) and not names.isdisjoint(extent.symbols):
                extent = replaced(extent.terms, {name: values[name] for name in names})
        return extent

    def _change(self, change: Mapping[str, Extent]) -> None:
        self.narrowed, self._known = {**self.narrowed, **change}, None
        self.changed |= change.keys()

    def _may_change(self, names: Collection[str]) -> bool:
        """Returns whether this program may decide dimensions; those of an enclosing program are decided there."""
        return not self.is_body or self.fixed.isdisjoint(names)

    def _ranges(self, question: Question) -> list[Settled]:
        """Returns the ranges that decide ``question``, the widest first; none if unified dimensions may do.

        A comparison of several dimensions yields ranges of one size only if they may be fixed.
        """
        found = [
            each for each in settled(question, self.fixed) if not (is_iteration(each.name) or is_length(each.name))
        ]
        permissions = self.permissions
        may_fix = Permission.FIX in permissions.granted
        wide = [each for each in found if not isinstance(each.extent, int)]
        if not may_fix and not question.equal and len(symbols(question.difference)) > 1 and wide != found:
            permissions.useful.add(Permission.FIX)
            found = wide
        if question.equal and question.needed:  # no program is only for data that are empty
            found = [each for each in found if each.extent != 0 or each.name not in self.of_data]
        if not may_fix and Permission.UNIFY not in permissions.granted and self._unified(question, found):
            permissions.useful.add(Permission.UNIFY)
            return []
        return found

    def _unified(self, question: Question, ranges: Sequence[Settled]) -> Narrowed:
        """Returns the dimensions of a comparison that become others, because these are ``unified`` with them; not those
        that are declared.

        The comparison is an equality, or an order that is required, such as indices that are at most as long as the
        data: equal extents satisfy it, also extents that are not ``unified``. Returns nothing if ``ranges`` has a range
        of more than one size. Of two sums, addends of one side become those of the other, as past and present keys
        become those of values.
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
        for a, b in self.pairs:
            is_pair = a != b and a in requested and b in requested and b not in self.fixed
            if (
                is_pair
                and not {a, b} & found.keys()
                and (len(signs) < len(requested) or signs[a] == -signs[b])
                and of_symbol(requested[a]) not in found.values()
            ):
                found[b] = of_symbol(requested[a])
        if not found and not question.equal:
            return solved(Question(question.difference, equal=True), self.fixed, self.of_data) or {}
        return found

    def _is_one_of_two(self, question: Question) -> bool:
        """Returns whether ``question`` requires that the larger of two extents that broadcast is a particular one of
        them.
        """
        if not question.equal or len(symbols(question.difference)) < 2:
            return False
        for atom in self.broadcasting.created - self.broadcasting.known.keys():
            terms = of_atom(atom)
            for value in (ZERO, atom.terms):
                left = add(terms, scale(value, -1))
                number = next(n for product, n in left if product == ((atom, 1),))
                factor = next((n for product, n in question.difference if product == ((atom, 1),)), 0)
                if factor and scale(left, factor) == scale(question.difference, number):
                    self.broadcasting.known[atom] = extent_of(value)
                    return True
        return False


def _choices(size: Size) -> int:
    """Returns the number of minima and maxima in ``size``."""
    return sum(isinstance(atom, AboveZero | Clamped) for atom in all_atoms(size.terms))
