"""Sessions: compiled programs bound to devices, which run any number of times."""

from landbridge.session.session import Session

__all__ = ["Session"]


def _limited() -> type[Session]:
    """Returns the class of Sessions with a ``time_limit``, which few need and no other imports."""
    from landbridge.session.limited_session import LimitedSession

    return LimitedSession


Session._limited = staticmethod(_limited)
