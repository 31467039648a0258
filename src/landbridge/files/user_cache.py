"""Finds the user's cache folder, if there is one."""

from __future__ import annotations

import os
from pathlib import Path


def user_cache() -> Path | None:
    """Returns the folder by the XDG base directory specification: ``XDG_CACHE_HOME``, else ``.cache`` in the home
    directory.

    None where the user has no home, as in a container that runs under a bare user number: neither ``HOME`` nor an entry
    in the system's list of users. It need not exist.
    """
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if named.is_absolute():
        return named
    user_folder = Path(os.path.expanduser("~"))  # noqa: PTH111  Path.home raises RuntimeError where there is none
    return user_folder / ".cache" if user_folder.is_absolute() else None
