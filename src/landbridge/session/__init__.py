"""Sessions: compiled programs bound to devices, ready to run again and again."""

from landbridge.session.segmented_session import Session

__all__ = ["Session"]
