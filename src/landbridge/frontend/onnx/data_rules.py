"""The user's rules for external data: which folder contains it, and where links may lead."""

from __future__ import annotations

import os
from pathlib import Path

from landbridge.errors import InputError
from landbridge.records import record


@record(frozen=True)
class DataRules:
    """The user's rules for external data.

    ``folder``: the folder that contains it; None is the folder of the model's file. ``allow_links``: links in it may
    lead anywhere.
    """

    folder: Path | None = None
    allow_links: bool = False


#: The default.
OF_THE_MODEL = DataRules()


def data_rules(folder: str | os.PathLike[str] | None, allow_links: bool) -> DataRules:
    """Returns the rules of these options of ``landbridge.compile``; raises InputError if there is no such folder."""
    if folder is not None and not (isinstance(folder, str | os.PathLike) and Path(folder).is_dir()):
        raise InputError(f"external_data={folder!r} is not a folder; name the one that paths to external data begin at")
    return DataRules(None if folder is None else Path(folder), allow_links)
