"""Sessions: compiled programs bound to devices, which run any number of times."""

from landbridge.executable.executable import Executable, is_cut
from landbridge.session.session import Session

__all__ = ["Session"]


def _kind_for(executable: Executable, *, limited: bool) -> type[Session]:
    """Returns the class of Session for a program that is open or cut, or whose uses are ``limited`` in time.

    Few programs need one, and a program that does not imports none of these classes.
    """
    if limited:
        from landbridge.session.limited_session import LimitedSession

        return LimitedSession
    if is_cut(executable):
        from landbridge.session.segmented_session import SegmentedSession

        return SegmentedSession
    from landbridge.session.open_session import OpenSession

    return OpenSession


Session._kind_for = staticmethod(_kind_for)
