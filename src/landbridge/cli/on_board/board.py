"""A board with Landbridge: its properties, its programs, and commands that run there."""

from __future__ import annotations

import json
import re
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from landbridge import __version__
from landbridge.cli.on_board.address import BoardAddress
from landbridge.cli.on_board.connection import Connection, Done
from landbridge.cli.options import UsageError
from landbridge.cli.output import message, progress
from landbridge.errors import BoardError

if TYPE_CHECKING:
    from landbridge.executable.executable import Executable

#: Programs that stay there; of more, those go that were not used for longest.
RETAINED = 20

_NOT_FOUND = 127
#: Where the line of `install_line` puts it, and pip --user.
_FIND = """
cache=${XDG_CACHE_HOME:-$HOME/.cache}/landbridge/boards
PATH="$PATH:$HOME/.local/bin:$HOME/.landbridge/bin"
program=$(command -v "$1") || exit 127
"$program" --version || exit
echo "$program"
echo "$cache"
ls "$cache" 2>/dev/null
exit 0
"""
#: A file appears there whole, by a rename; its name says what is in it, and its time when it was used. What is left of
#: one where a board lost its power goes a day later.
_RECEIVE = """
mkdir -p "$1" && cd "$1" && cat >"$2.$$" && [ $(wc -c <"$2.$$") -eq "$3" ] && mv "$2.$$" "$2" || {
  rm -f "$2.$$"
  exit 1
}
ls -t ./*.lbx | tail -n +"$4" | while read -r old; do rm -f "$old"; done
find . -maxdepth 1 -name '*.lbx.*' -mtime +1 -exec rm -f {} \\;
"""
#: The folder stays when all of the inputs, whose number is stated, lie in it and the desk was told its name. A run that
#: was cut off later may leave it; another one removes it a day later.
_UNPACK = """
mkdir -p "$1" && folder=$(mktemp -d "$1/run.XXXXXX") || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT PIPE TERM
mkdir "$folder/out" && tar -xf - -C "$folder" && [ $(ls "$folder" | wc -l) -eq "$2" ] && echo "$folder" || exit 1
trap - EXIT
find "$1" -maxdepth 1 -name 'run.*' -mtime +1 -exec rm -rf {} \\;
"""
_DAMAGED = 76
#: The time of a program's file says when it was used. Its name is the SHA-256 of what must be in it: a board that lost
#: its power may have kept the name and not the content, and another desk may have removed the file.
_USE = """
touch -c "$1"
if command -v sha256sum >/dev/null && ! echo "$2  $1" | sha256sum -c >/dev/null 2>&1; then
  rm -f "$1"
  exit 76
fi
shift 2
exec "$@"
"""
_VERSION = re.compile(r"landbridge (?P<version>\S+) \((?P<isa>[^,]+), .*\)")


@dataclass(frozen=True)
class Answer:
    """The JSON that a command printed there, the files it wrote by their names, and its exit code."""

    result: dict[str, Any]
    files: Mapping[str, bytes]
    code: int


@dataclass(frozen=True)
class Board:
    """A board that answered: its instruction set, its ``landbridge``, its folder of programs and the files in it."""

    connection: Connection
    isa: str
    program: str
    folder: str
    known: set[str] = field(default_factory=set)

    @staticmethod
    def reach(text: str, device: str, target: str | None, model: Path) -> Board:
        """Connects to the board at ``text``, ``ssh://[USER@]HOST[:PORT]``, whose ``device`` is to run ``model``.

        Raises UsageError where ``device`` needs a ``target``, as the board's devices are not queried, and BoardError
        where it cannot be reached or has no Landbridge of this version, saying how to get that.
        """
        address = BoardAddress.parse(text)
        if device != "cpu" and target is None and model.suffix != ".lbx":
            raise UsageError(f"name the target of {device} on the board too, with -t", parameter="--device")
        connection = Connection(address)
        with progress(f"connecting to {address.place}"):
            done = connection.run(_FIND, address.program or "landbridge")
        if done.status == _NOT_FOUND:
            subject = address.program or "landbridge on PATH, in ~/.local/bin or ~/.landbridge/bin"
            raise BoardError(f"{text} has no {subject}; install it there: {install_line(address)}")
        lines = done.stdout.splitlines()
        found = _VERSION.match(lines[0]) if done.status == 0 and len(lines) > 2 else None
        if found is None:
            output = " ".join((done.stdout + done.stderr).split())
            raise BoardError(
                f"the landbridge of {text} does not say which it is (status {done.status}: {output[-300:]}); this is "
                f"{__version__}, install it there: {install_line(address)}"
            )
        if found["version"] != __version__:
            raise BoardError(
                f"{text} has landbridge {found['version']}, this is {__version__}; what one compiles the other need "
                f"not run; install this one there: {install_line(address)}"
            )
        return Board(connection, found["isa"], lines[1], lines[2], set(lines[3:]))

    @property
    def address(self) -> str:
        """Returns the address as the user typed it."""
        return self.connection.address.text

    def target(self, declared: str | None, model: Path) -> str | None:
        """Returns the target for ``model``: the ``declared`` one, else any CPU of the board's instruction set.

        Raises BoardError for another instruction set, before compiling.
        """
        if model.suffix == ".lbx":
            return declared
        if declared is not None:
            from landbridge.targets import Target

            isa = Target(declared).attrs.get("isa")
            if isinstance(isa, str):
                self._check_isa(isa)
            return declared
        text = f"llvm -mtriple={self.isa}-linux-gnu -mcpu=generic"
        message(f"compiled for every {self.isa}, as no target is stated; name the board's, as in -t raspberry-pi-5")
        return text

    def command(
        self,
        command: str,
        executable: Executable,
        options: Sequence[str] = (),
        inputs: Mapping[str, Path] | None = None,
        writes: Mapping[str, Path] | None = None,
        *,
        may_end_with: Sequence[int] = (),
    ) -> Answer:
        """Runs ``landbridge COMMAND PROGRAM options --json`` there and returns its output.

        ``executable`` is copied there unless the board has a program of this content. ``inputs``: files by input.
        ``writes``: options whose value is a file or folder that is written and copied back, with the local path that
        messages name. ``may_end_with``: exit codes other than 0 that are no error. Raises BoardError with the board's
        own message where it fails.
        """
        program = self._program(executable)
        copy = PurePosixPath(program)
        words = [command, program, *options]
        folder = self._unpack(inputs or {}) if inputs or writes else ""
        try:
            there = {f"{folder}/{number}.npy": str(file) for number, file in enumerate((inputs or {}).values())}
            for name, path in zip(inputs or {}, there, strict=True):
                words += ["--input", f"{name}={path}"]
            for option, here in (writes or {}).items():
                place = f"{folder}/out/{option.strip('-')}"
                there[place] = str(here)
                words += [option, place]
            used = ("sh", "-c", _USE, "sh", program, copy.stem, self.program, *words, "--json")
            with progress(f"running on {self.connection.address.place}"):
                done = self.connection.run_tied(*used)
            if done.status == _DAMAGED:
                self.known.discard(copy.name)
                self._program(executable)
                with progress(f"running on {self.connection.address.place}"):
                    done = self.connection.run_tied(*used)
            names = {**there, program: self.address, copy.name: self.address}
            result = self._result(command, done, names, may_end_with)
            files = self._fetch(folder) if writes else {}
        finally:
            if folder:
                self._remove(folder)
        return Answer(result, files, done.status)

    def _program(self, executable: Executable) -> str:
        """Returns the path of the program on the board."""
        from landbridge.executable.parts import CodeImage

        for module in executable.modules:
            if isinstance(module.image, CodeImage):
                self._check_isa(module.image.isa)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "program.lbx"
            _without_times(executable).save(file)
            return self._send(file)

    def _check_isa(self, isa: str) -> None:
        if isa != self.isa:
            raise BoardError(
                f"compiled for {isa}, {self.address} is {self.isa}; compile the model for it: leave "
                f"-t out, or name a target of it, as in -t 'llvm -mtriple={self.isa}-linux-gnu -mcpu=generic'"
            )

    def _send(self, file: Path) -> str:
        from landbridge.compiler.cache.key import digest_of_file

        name = f"{digest_of_file(file)}.lbx"
        path = str(PurePosixPath(self.folder) / name)
        if name in self.known:
            return path
        nbytes = file.stat().st_size
        with progress(f"copying {nbytes:,} bytes to {self.connection.address.place}"), file.open("rb") as content:
            done = self.connection.send(content, _RECEIVE, self.folder, name, str(nbytes), str(RETAINED + 1))
        if done.status:
            raise BoardError(f"{self.address} does not take {nbytes:,} bytes into {self.folder}: {_text(done)}")
        self.known.add(name)
        return path

    def _unpack(self, inputs: Mapping[str, Path]) -> str:
        """Makes a folder there with the files of ``inputs`` as 0.npy and so on; returns its path."""
        with tempfile.TemporaryFile() as packed:
            with tarfile.open(fileobj=packed, mode="w") as archive:
                for number, file in enumerate(inputs.values()):
                    archive.add(file.resolve(), f"{number}.npy", filter=_anyones)
            packed.seek(0)
            done = self.connection.send(packed, _UNPACK, self.folder, str(len(inputs) + 1))
        if done.status or not done.stdout.strip():
            raise BoardError(f"{self.address} does not take the inputs into {self.folder}: {_text(done)}")
        return done.stdout.strip()

    def _fetch(self, folder: str) -> dict[str, bytes]:
        """Returns the files that were written into the folder ``out`` of ``folder``, by relative path."""
        with tempfile.TemporaryFile() as packed:
            done = self.connection.fetch(packed, 'tar -cf - -C "$1/out" .', folder)
            if done.status:
                raise BoardError(f"the outputs cannot be fetched from {self.address}: {_text(done)}")
            found = {}
            with tarfile.open(fileobj=packed, mode="r:") as archive:
                for member in archive:
                    opened = archive.extractfile(member) if member.isfile() else None
                    if opened is not None:
                        found[str(PurePosixPath(member.name))] = opened.read()
        return found

    def _remove(self, folder: str) -> None:
        try:
            self.connection.run('rm -rf "$1"', folder)
        except BoardError as error:
            message(f"{folder} stays on the board: {error}")

    def _result(
        self, command: str, done: Done, names: Mapping[str, str], may_end_with: Sequence[int]
    ) -> dict[str, Any]:
        try:
            result = json.loads(done.stdout)
        except ValueError:
            result = None
        described = result.get("error") if isinstance(result, dict) else None
        if isinstance(result, dict) and described is None and done.status in (0, *may_end_with):
            if done.stderr.strip():
                message(_named_here(done.stderr.rstrip(), names))
            return result
        text = described["message"] if described else (_text(done) or f"ended with status {done.status}")
        raise BoardError(f"landbridge {command} on {self.address}: {_named_here(text, names)}")


def install_line(address: BoardAddress) -> str:
    """Returns the command that installs this version there, in a folder that is searched; Debian's pip requires one.

    A version between two releases, which no index has, is built in its clone and copied.
    """
    ssh_port, scp_port = ("", "") if address.port is None else (f"-p {address.port} ", f"-P {address.port} ")
    package, copied = f"landbridge=={__version__}", ""
    if "dev" in __version__ or "+" in __version__:
        package = f"./landbridge-{__version__}-py3-none-any.whl"
        copied = f"pip wheel --no-deps . && scp {scp_port}{package} {address.place}: && "
    pip = "~/.landbridge/bin/pip"
    created = f"python3 -m venv --clear ~/.landbridge && {pip} install --no-compile {package}"
    return f"{copied}ssh {ssh_port}{address.place} '{created} && {pip} uninstall -qy setuptools pip'"


def _named_here(text: str, names: Mapping[str, str]) -> str:
    """Returns ``text`` of the board with file names of the board replaced by the local ``names``."""
    for there, here in names.items():
        text = text.replace(there, here)
    return text


def _without_times(executable: Executable) -> Executable:
    """Returns ``executable`` without the times of its compile, so that the same program is the same file."""
    retained = {name: value for name, value in executable.metadata.items() if not name.startswith("seconds")}
    return replace(executable, metadata=retained)


def _anyones(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o600
    return member


def _text(done: Done) -> str:
    return " ".join((done.stderr or done.stdout).split())[-600:]
