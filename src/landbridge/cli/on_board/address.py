"""The address of a board: ``ssh://[USER@]HOST[:PORT][/PATH/OF/landbridge]``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from landbridge.cli.options import UsageError

_FORM = re.compile(r"ssh://(?:(?P<user>[^@:/\s-][^@:/\s]*)@)?(?P<host>\[[0-9A-Fa-f:]+\]|[^@:/\s\[\]-][^@:/\s\[\]]*)"
                   r"(?::(?P<port>[0-9]{1,5}))?(?P<program>/[^\s]+)?/?")  # fmt: skip


@dataclass(frozen=True)
class BoardAddress:
    """A board by its ssh name, and the path of its ``landbridge``, empty to search for it."""

    text: str
    user: str
    host: str
    port: int | None
    program: str

    @staticmethod
    def parse(text: str) -> BoardAddress:
        """Parses ``"ssh://pi@board"``; raises UsageError for any other form."""
        found = _FORM.fullmatch(text)
        port = int(found["port"]) if found and found["port"] else None
        if found is None or (port is not None and not 0 < port < 1 << 16):
            raise UsageError(
                f"{text!r} is not ssh://[USER@]HOST[:PORT], as in ssh://pi@board; behind it may stand where landbridge "
                "lies there, as in ssh://pi@board/home/pi/venv/bin/landbridge",
                parameter="--on",
            )
        return BoardAddress(text, found["user"] or "", found["host"].strip("[]"), port, found["program"] or "")

    @property
    def words(self) -> list[str]:
        """Returns the last words of ssh's command line before the command."""
        port = [] if self.port is None else ["-p", str(self.port)]
        return [*port, "--", self.place]

    @property
    def place(self) -> str:
        """Returns ``user@host``, as a user types it."""
        return f"{self.user}@{self.host}" if self.user else self.host
