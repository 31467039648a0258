"""A disk for the emulated machine: this Python, what Landbridge's run side needs of it, modules, and what to run.

Everything lies where it lies here, so that nothing is configured; packages lie in ``/packages``.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from compileall import compile_dir
from pathlib import Path
from py_compile import PycInvalidationMode

from tests.boards import folder as unpacked

#: What programs on the machine import; the compiler's packages stay out.
DISTRIBUTIONS = ("numpy", "ml-dtypes", "apache-tvm-ffi", "pytest")
_GUEST = Path(__file__).with_name("guest")
_REPOSITORY = Path(__file__).parents[2]
_LEFT_OUT = ("site-packages", "test", "tests", "idlelib", "tkinter", "ensurepip", "lib2to3", "config-*")
_BYTES = 384 << 20


def make_disk(
    path: Path,
    modules: Iterable[tuple[str, bytes]],
    files: Iterable[Path] = (),
    parameters: Mapping[str, str] | None = None,
    board: Path | None = None,
) -> None:
    """Write an ext4 image to ``path`` with ``modules`` to load and ``files`` in ``/packages``, whose init is ours.

    ``parameters``: of modules, by name. ``board``: a folder of another instruction set, as ``tests.boards.folder``
    makes them, whose Python is taken; None for this machine's.
    """
    root = path.with_suffix(".root")
    make_root(root, modules, files, parameters, board)
    path.unlink(missing_ok=True)
    command = ["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-d", str(root), str(path), f"{_BYTES >> 10}k"]
    subprocess.run(command, check=True, env={**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"})
    shutil.rmtree(root)


def make_root(
    root: Path,
    modules: Iterable[tuple[str, bytes]],
    files: Iterable[Path],
    parameters: Mapping[str, str] | None,
    board: Path | None,
) -> None:
    """Write to the folder ``root`` what ``make_disk`` puts on a disk."""
    shutil.rmtree(root, ignore_errors=True)
    packages = root / "packages"
    for folder in (packages, root / "modules", *(root / name for name in ("dev", "proc", "sys", "tmp", "run", "root"))):
        folder.mkdir(parents=True)
    interpreter = _copy_python_here(root) if board is None else _copy_board(board, root)
    for source in (_REPOSITORY / "src" / "landbridge", *files):
        copy = shutil.copytree if source.is_dir() else shutil.copy2
        copy(source, packages / source.name)
    if board is None:
        for library in _libraries(interpreter, *root.rglob("*.so")):
            _put(root, library)
    elif unpacked.python(board).name == f"python{sys.version_info.major}.{sys.version_info.minor}":
        # Compiling modules is most of what an emulated processor does here; what this Python compiles is the same.
        compile_dir(root, stripdir=root, quiet=2, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH)
    for number, (name, content) in enumerate(modules):
        (root / "modules" / f"{number:02}-{name}.ko").write_bytes(content)
        (root / "modules" / f"{number:02}-{name}.txt").write_text((parameters or {}).get(name, ""))
    init = root / "init"
    init.write_text(f"#!{interpreter} -I\n" + (_GUEST / "init.py").read_text())
    init.chmod(0o755)


def _copy_python_here(root: Path) -> Path:
    """Returns this machine's Python, which lies in ``root`` where it lies here; its packages lie in ``/packages``."""
    interpreter = Path(os.path.realpath(sys.executable))
    _put(root, interpreter)
    for name in {sysconfig.get_path("stdlib", vars=_base()), sysconfig.get_path("platstdlib", vars=_base())}:
        shutil.copytree(name, root / name[1:], ignore=shutil.ignore_patterns(*_LEFT_OUT), symlinks=True)
    for distribution in _with_dependencies(DISTRIBUTIONS):
        _copy_distribution(distribution, root / "packages")
    return interpreter


def _copy_board(board: Path, root: Path) -> Path:
    """Returns where the Python of ``board`` lies in ``root``; what runs programs is in ``/packages``."""
    ignored = shutil.ignore_patterns(*_LEFT_OUT, unpacked.compiler_packages(board).name, "share")
    for name in ("etc", "lib", "usr"):
        shutil.copytree(board / name, root / name, ignore=ignored, symlinks=True)
    for folder in (unpacked.site_packages(board), unpacked.described(board)):
        shutil.copytree(folder, root / "packages", ignore=shutil.ignore_patterns("tests"), dirs_exist_ok=True)
    return Path("/") / unpacked.python(board).relative_to(board)


def _base() -> dict[str, str]:
    return {"base": sys.base_prefix, "platbase": sys.base_exec_prefix, "installed_base": sys.base_prefix}


def _put(root: Path, file: Path) -> None:
    """Copy ``file`` to where it lies; and its folder's links, which Debian's merged ``/usr`` is made of."""
    target = root / str(file)[1:]
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(file, target)


def _libraries(*programs: Path) -> set[Path]:
    """The shared libraries that ``programs`` are linked with, and the loader."""
    found = set()
    for program in programs:
        lines = subprocess.run(["ldd", str(program)], capture_output=True, text=True).stdout
        found |= set(re.findall(r"(?:=> |^\t)(/\S+)", lines, re.MULTILINE))
    outside = {Path(name) for name in found if "/packages/" not in name}
    return {path for path in outside if path.exists()}


def _with_dependencies(names: Iterable[str]) -> list[importlib.metadata.Distribution]:
    """The installed distributions ``names`` and what they require on this machine."""
    found: dict[str, importlib.metadata.Distribution] = {}

    def add(name: str) -> None:
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key in found:
            return
        found[key] = distribution = importlib.metadata.distribution(name)
        for requirement in distribution.requires or ():
            text, _, marker = requirement.partition(";")
            if not marker:
                add(re.match(r"[\w.-]+", text)[0])  # type: ignore[index]

    for name in names:
        add(name)
    return list(found.values())


def _copy_distribution(distribution: importlib.metadata.Distribution, packages: Path) -> None:
    for file in distribution.files or ():
        if not str(file).startswith("..") and "/tests/" not in str(file):
            target = packages / str(file)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(distribution.locate_file(file), target)  # type: ignore[arg-type]
