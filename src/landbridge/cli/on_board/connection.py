"""Runs shell scripts on a board by the system's ssh, with the keys, names and host keys of its user."""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import dataclass
from typing import IO

from landbridge.cli.on_board.address import BoardAddress
from landbridge.errors import BoardError

#: Seconds after which a host that does not answer is unreachable.
CONNECT_S = 15
#: A connection of which nothing is heard for so long is lost: questions, and seconds between them.
_QUESTIONS, _BETWEEN_S = 6, 10
#: ssh's own exit status where it, and not the command, failed.
_OF_SSH = 255

#: What ssh says of a connection that it had; killed, it says nothing.
_LOST = ("closed by", "broken pipe", "connection reset", "not responding")
_REMEDIES = (
    (
        "has changed",
        "its key is another than the one that is known: if the board was set up anew, take that line out of that file "
        "and connect by hand once to accept the new key: {by_hand}; if it was not, it may be another machine",
    ),
    ("host key verification failed", "connect by hand once to see and accept its key: {by_hand}"),
    ("permission denied", "nothing is typed in here, so it needs a key: ssh-copy-id {place}"),
    ("could not resolve", "is the name right, and in DNS, /etc/hosts or ~/.ssh/config?"),
    ("timed out", "is it on, and in this network? by hand: {by_hand}"),
    ("", "try by hand: {by_hand}"),
)

#: Runs ``"$@"`` and ends it when standard input does, which is when this side goes away: nothing stays running there.
_TIED = """
exec 3<&0
"$@" </dev/null & child=$!
{ cat <&3; kill $child; } >/dev/null 2>&1 & watch=$!
wait $child; status=$?
kill $watch
exit $status
"""


#: What a script prints first: before it may stand what the start files of the shell there print.
_BEGIN = b"--- landbridge begins ---\n"
_MOST_BEFORE = 1 << 16
_SAY_BEGIN = "printf '%s\\n' '--- landbridge begins ---'\n"


@dataclass(frozen=True)
class Done:
    """The output of a script and its exit status."""

    status: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Connection:
    """Runs scripts on the board at ``address``, each in its own connection."""

    address: BoardAddress

    def run(self, script: str, *words: str) -> Done:
        """Runs ``script`` in the POSIX shell there, with ``words`` as its parameters.

        Raises BoardError where ssh fails.
        """
        return self.send(None, script, *words)

    def run_tied(self, *words: str) -> Done:
        """Runs the command ``words`` there; it ends when this process does. Raises BoardError where ssh fails."""
        return self.send(None, _TIED, *words)

    def send(self, content: IO[bytes] | None, script: str, *words: str) -> Done:
        """Runs as ``run`` does, with ``content`` from its current position as the script's standard input."""
        with tempfile.TemporaryFile() as printed:
            status, stderr = self._start(script, words, content, printed)
            return Done(status, printed.read().decode(errors="replace"), stderr)

    def fetch(self, into: IO[bytes], script: str, *words: str) -> Done:
        """Runs as ``run`` does, and writes what the script prints to the file ``into`` at its current position."""
        status, stderr = self._start(script, words, None, into)
        return Done(status, "", stderr)

    def _start(self, script: str, words: tuple[str, ...], given: IO[bytes] | None, into: IO[bytes]) -> tuple[int, str]:
        command = " ".join(["exec", "sh", "-c", *map(_quoted, (_SAY_BEGIN + script, "sh", *words))])
        options = [
            "-T",
            *("-o", "BatchMode=yes"),
            *("-o", f"ConnectTimeout={CONNECT_S}"),
            *("-o", f"ServerAliveInterval={_BETWEEN_S}"),
            *("-o", f"ServerAliveCountMax={_QUESTIONS}"),
            # This disables options that a user sets for interactive sessions.
            *("-o", "RemoteCommand=none"),
            *("-o", "ClearAllForwardings=yes"),
        ]
        reading, writing = os.pipe()  # the board's standard input stays open as long as `writing` does
        try:
            with tempfile.TemporaryFile() as messages:
                try:
                    done = subprocess.run(
                        ["ssh", *options, *self.address.words, command],
                        stdin=reading if given is None else given,
                        stdout=into,
                        stderr=messages,
                    )
                except FileNotFoundError:
                    raise BoardError(
                        "--on needs ssh, which is not on PATH; install it: apt-get install openssh-client"
                    ) from None
                messages.seek(0)
                stderr = messages.read().decode(errors="replace")
        finally:
            os.close(reading)
            os.close(writing)
        if done.returncode == _OF_SSH or done.returncode < 0:
            raise self._failure(stderr)
        into.seek(0)
        before, begin, _ = into.read(_MOST_BEFORE).partition(_BEGIN)
        into.seek(len(before + begin) if begin else 0)
        return done.returncode, stderr

    def _failure(self, stderr: str) -> BoardError:
        lines = [line.strip() for line in stderr.splitlines()]
        cut = [line for line in lines if any(sign in line.lower() for sign in _LOST)]
        if cut or not any(lines):
            output = " ".join(cut) or "ssh ended without a word"
            return BoardError(
                f"the connection to {self.address.text} was lost: {output}; what was copied in part is removed there, "
                "what ran there ends: give the command again"
            )
        port = "" if self.address.port is None else f"-p {self.address.port} "
        by_hand = f"ssh {port}{self.address.place}"
        # ssh prints a framed text for a changed key: the line with the old key's location and the last lines matter.
        changed = [line for line in lines if line.startswith(("Offending", "Host key for"))]
        output = " ".join(" ".join(changed or lines).split())
        way = next(text for sign, text in _REMEDIES if sign in output.lower())
        return BoardError(
            f"{self.address.text} cannot be reached: {output}; {way.format(by_hand=by_hand, place=self.address.place)}"
        )


def _quoted(word: str) -> str:
    """Returns ``word`` quoted for any login shell."""
    return "'" + word.replace("'", "'\"'\"'") + "'"
