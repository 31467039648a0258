"""Labels: what the numbers of an output that names classes mean."""

from __future__ import annotations

from landbridge.records import record


@record(frozen=True)
class Labels:
    """The meaning of the numbers of ``output``: if ``are_maps``, a row has one number for each of ``names``, else a
    number is an index into ``names``.
    """

    output: str
    names: tuple[str, ...] | tuple[int, ...]
    are_maps: bool

    def __str__(self) -> str:
        shown = ", ".join(map(repr, self.names[:8])) + ", ..." * (len(self.names) > 8)
        if self.are_maps:
            return f"output {self.output!r} is a list of maps, and becomes their values: a column for each of {shown}"
        return f"output {self.output!r} is text, and becomes the number of one of {shown}"
