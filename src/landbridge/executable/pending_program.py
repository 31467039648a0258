"""PendingProgram: the better program that is being made for one that was made in a hurry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from landbridge.executable.executable import Executable


class PendingProgram(Protocol):
    """A program in the making, of the same model, target and shapes as the program that has it."""

    def take(self) -> Executable | None:
        """Returns the program once it is there, at every call from then on; None while it is being made, and for good
        where it cannot be made, of which the first call then warns. Takes microseconds until it is there. Any thread
        may call it.
        """

    def decline(self, reason: str) -> None:
        """Warns, once, that the program cannot be used because of ``reason``; ``take`` returns None from then on."""
