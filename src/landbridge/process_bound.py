"""ProcessBound: objects that hold addresses, code, locks or handles of one process, and so are neither pickled nor
copied."""

from __future__ import annotations

from typing import ClassVar, NoReturn, SupportsIndex

from landbridge.errors import NotPicklableError


class ProcessBound:
    """Refuses ``pickle``, ``copy.copy`` and ``copy.deepcopy`` of its subclasses; ``_instead`` says the way out."""

    __slots__ = ()

    _instead: ClassVar[str]

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> NoReturn:
        """Raises NotPicklableError, for pickle and copy alike."""
        raise NotPicklableError(
            f"a {type(self).__name__} belongs to this process and can be neither pickled nor copied; {self._instead}"
        )
