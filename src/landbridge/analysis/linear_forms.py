"""Linear forms over atoms, and bounds made of them."""

from __future__ import annotations

from typing import TypeAlias

from landbridge.records import record

Number: TypeAlias = int | float
#: Coefficients by the number of their atom.
Terms: TypeAlias = dict[int, int]
#: A bound: ``times * atom`` is at most (at least) the form.
Bound: TypeAlias = tuple[int, "Form"]


@record(slots=True)
class Form:
    """``const + sum(terms[a] * atom a)``. Forms may share their terms, which are never changed."""

    terms: Terms
    const: int = 0

    def plus(self, other: Form, times: int = 1) -> Form:
        """Returns ``self + times * other``."""
        if not other.terms:
            return Form(self.terms, self.const + other.const * times)
        terms = dict(self.terms)
        for a, c in other.terms.items():
            left = terms.get(a, 0) + c * times
            if left != 0:  # also drops a Size that is not known to differ from 0
                terms[a] = left
            else:
                terms.pop(a, None)
        return Form(terms, self.const + other.const * times)

    def scaled(self, times: int) -> Form:
        """Returns ``times * self``."""
        if times == 1:
            return self
        return Form({a: c * times for a, c in self.terms.items()} if times != 0 else {}, self.const * times)


def constant(x: int) -> Form:
    """Returns a number as a form."""
    return Form({}, x)
