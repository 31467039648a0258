"""The error for what the first tier leaves to the compiler."""

from __future__ import annotations

from landbridge.errors import CompileError


class NotTakenError(CompileError):
    """Raised for what a first program cannot be made of, with what that is; the compiler takes the model instead.

    It never reaches the user: ``landbridge.first_tier.program.first_program`` returns None.
    """
