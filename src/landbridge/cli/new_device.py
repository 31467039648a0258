"""``landbridge new-device``: writes a package with a device, its target and its code generator, as a starting point."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

from landbridge.cli.options import CliArgument, CliOption
from landbridge.cli.output import message
from landbridge.errors import InputError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable  # of Python 3.11

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_LONGEST = 40


def new_device(
    name: Annotated[str, CliArgument(metavar="NAME", help="What the device is asked for as: mynpu.")],
    into: Annotated[Path, CliOption(metavar="FOLDER", help="Where the folder NAME is made.", folder=True)] = Path(),
) -> None:
    """Write a package NAME for a device of your own, which conforms and runs networks as it stands.

    Its device is simulated: memory that is not coherent, one queue, kernels built by the C compiler.
    """
    _check_name(name)
    folder = into / name
    if folder.exists() or folder.is_symlink():
        raise InputError(f"{folder} exists; choose another name, or another folder with --into")
    into.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{name}-", dir=into) as unfinished:
        created = Path(unfinished, name)
        for path, text in _texts(name):
            (created / path).parent.mkdir(parents=True, exist_ok=True)
            (created / path).write_text(text, encoding="utf-8")
        created.rename(folder)
    message(f"wrote {folder}; next: pip install -e '{folder}[test]' && landbridge conformance {name}")


def _check_name(name: str) -> None:
    """Raises InputError unless ``name`` is legal and free as a device, a target kind and part of a module's name."""
    if not _NAME.fullmatch(name) or len(name) > _LONGEST or keyword.iskeyword(name):
        raise InputError(
            f"{name!r} is not a name for a device; legal: lower-case letters, digits and single underscores "
            "between them, "
            f"a letter first, at most {_LONGEST}, no word of Python's"
        )
    from landbridge.codegen.registry import codegen_kinds
    from landbridge.device import registry as devices
    from landbridge.targets import names as target_kinds

    for noun, taken in (
        ("device", devices.names()),
        ("target kind", target_kinds()),
        ("code generator", codegen_kinds()),
    ):
        if name in taken:
            raise InputError(f"there is a {noun} {name!r} already; choose another name")


def _texts(name: str) -> Iterator[tuple[str, str]]:
    """Yields path and text of each file of the package for device ``name``."""
    words = {
        "name": name,
        "Class": "".join(part.capitalize() for part in name.split("_")),
        "CONSTANT": name.upper(),
    }
    for path, template in _templates(files("landbridge.cli") / "device_template", ""):
        text = Template(template.read_text(encoding="utf-8")).substitute(words)
        yield path.removesuffix(".tmpl").replace("NAME", name), text


def _templates(folder: Traversable, path: str) -> Iterator[tuple[str, Traversable]]:
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if entry.is_dir():
            yield from _templates(entry, f"{path}{entry.name}/")
        else:
            yield path + entry.name, entry
