"""ProcessBound: base of objects that hold addresses, code, locks or handles of one process, and so are neither pickled
nor copied.
"""

from __future__ import annotations

from typing import ClassVar, NoReturn, SupportsIndex

from landbridge.errors import NotPicklableError


class ProcessBound:
    """Base class of objects that cannot be pickled or copied: ``pickle``, ``copy.copy`` and ``copy.deepcopy`` raise
    NotPicklableError.

    A subclass sets ``_instead``, the text of what to do instead, and ``_public_name`` where users know its objects by
    the name of another class.
    """

    __slots__ = ()

    _instead: ClassVar[str]
    _public_name: ClassVar[str | None] = None

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> NoReturn:
        """Raises NotPicklableError; ``pickle`` and ``copy`` call this."""
        name = self._public_name or type(self).__name__
        article = "an" if name[0] in "AEIOU" else "a"
        raise NotPicklableError(
            f"{article} {name} belongs to this process and can be neither pickled nor copied; {self._instead}"
        )
