"""ProcessBound: base of objects that hold addresses, code, locks or handles of one process, and so are neither pickled
nor copied.
"""

from __future__ import annotations

from typing import ClassVar, NoReturn, SupportsIndex

from landbridge.errors import NotPicklableError


class ProcessBound:
    """Refuses ``pickle``, ``copy.copy`` and ``copy.deepcopy`` of objects of its subclasses; ``_instead`` says what to
    do.

    ``_public_name`` is the class that the user knows, where its objects are of classes below it.
    """

    __slots__ = ()

    _instead: ClassVar[str]
    _public_name: ClassVar[str | None] = None

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> NoReturn:
        """Raises NotPicklableError, for pickle and copy."""
        name = self._public_name or type(self).__name__
        article = "an" if name[0] in "AEIOU" else "a"
        raise NotPicklableError(
            f"{article} {name} belongs to this process and can be neither pickled nor copied; {self._instead}"
        )
