"""A folder with what a board of Arm's or of RISC-V has: Debian's Python and C library, and packages from PyPI.

QEMU's user mode runs its programs here, with no root file system and nothing installed: ``qemu-aarch64 -L folder``,
``qemu-arm`` or ``qemu-riscv64``.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

#: What every board has, with what it needs.
_LIBRARIES = (
    "libc6",
    "libexpat1",
    "zlib1g",
    "libffi8",
    "libgcc-s1",
    "libstdc++6",
    "liblzma5",
    "libbz2-1.0",
    "libuuid1",
)
#: Packages in the versions that are installed here, with what they need: what runs programs, and what tests ask for.
_RUNNING = ("numpy", "ml-dtypes", "apache-tvm-ffi")
#: What the compiler needs beside them, in a folder of its own.
_COMPILING = ("xdsl", "onnx", "onnx-ir", "llvmlite")
_PLATFORMS = ("manylinux2014_aarch64", "manylinux_2_27_aarch64", "manylinux_2_28_aarch64")
#: The release whose repository this machine's apt knows.
_HERE = "bookworm"


@dataclass(frozen=True)
class Contents:
    """A release of Debian, the version of its Python (``3.11``), and what that needs beside what every board has.

    ``architecture``: Debian's name. Packages come from PyPI for arm64 alone; numpy of others is Debian's.
    """

    release: str
    python: str
    libraries: tuple[str, ...]
    architecture: str = "arm64"

    @property
    def debian(self) -> list[str]:
        """Debian's packages."""
        name = f"python{self.python}"
        return [f"{name}-minimal", f"lib{name}-minimal", f"lib{name}-stdlib", *_LIBRARIES, *self.libraries]


BOOKWORM = Contents("bookworm", "3.11", ("libssl3", "libcrypt1"))
FORKY = Contents("forky", "3.14", ("libssl3t64", "libzstd1"))
ARMHF = Contents(
    "bookworm",
    "3.11",
    ("libssl3", "libcrypt1", "python3-numpy", "libblas3", "liblapack3", "libgfortran5"),
    architecture="armhf",
)
#: QEMU's name of a CPU with vectors of 128 bits.
RISCV_VECTORS = "rv64,v=true,vext_spec=v1.0,vlen=128,elen=64"
RISCV64 = Contents(
    "trixie",
    "3.13",
    ("libssl3t64", "libzstd1", "python3-numpy", "libblas3", "liblapack3", "libgfortran5"),
    architecture="riscv64",
)


def fetch(cache: Path, contents: Contents = BOOKWORM) -> Path:
    """The folder in ``cache``, made there by apt and pip where it is missing.

    Raises RuntimeError with the words of the program that failed.
    """
    running, compiling = ([f"{name}=={version(name)}" for name in names] for names in (_RUNNING, _COMPILING))
    name = "aarch64" if contents.architecture == "arm64" else contents.architecture
    listed = [contents.release, *contents.debian, *running, "and", *compiling]
    folder = cache / f"{name}-{hashlib.sha256(' '.join(listed).encode()).hexdigest()[:12]}"
    if folder.exists():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of several workers one makes it
        if not folder.exists():
            unpacking = cache / f"{name}.part"
            shutil.rmtree(unpacking, ignore_errors=True)
            for package in _debian_packages(unpacking / "apt", contents):
                _run("dpkg-deb", "-x", str(package), str(unpacking))
            shutil.rmtree(unpacking / "apt")
            if not (unpacking / "lib").exists():
                (unpacking / "lib").symlink_to("usr/lib")  # as releases since trixie have it
            if contents.architecture == "arm64":
                _install(contents.python, running, site_packages(unpacking))
                _install(contents.python, [*running, *compiling], compiler_packages(unpacking))
            else:
                _link_alternatives(unpacking)
            unpacking.rename(folder)
    return folder


def python(folder: Path) -> Path:
    """The board's Python."""
    (found,) = (folder / "usr" / "bin").glob("python3.*")
    return found


def python_here(folder: Path, qemu: str) -> Path:
    """A script of this machine that runs the board's Python, which that calls itself: a program under QEMU's user mode
    that starts another one starts it on this machine."""
    script = folder / "usr" / "bin" / "python-here"
    if not script.exists():
        part = script.with_name(f"{script.name}.{os.getpid()}")
        cpu = RISCV_VECTORS if Path(qemu).name == "qemu-riscv64" else "max"
        part.write_text(f'#!/bin/sh\nexec {qemu} -cpu {cpu} -L {folder} -0 "$0" {python(folder)} -S "$@"\n')
        part.chmod(0o755)
        part.rename(script)
    return script


def site_packages(folder: Path) -> Path:
    """Where packages lie: those from PyPI, or else Debian's own."""
    of_debian = folder / "usr" / "lib" / "python3" / "dist-packages"
    return of_debian if of_debian.exists() else folder / "usr" / "local" / "lib" / python(folder).name / "site-packages"


def compiler_packages(folder: Path) -> Path:
    """Where packages from PyPI lie, those of the compiler among them."""
    return site_packages(folder).with_name("compiler-packages")


def described(folder: Path) -> Path:
    """Where the board's Python finds which version of Landbridge it has: the one that is installed here."""
    installed = version("landbridge")
    made = folder / "versions" / installed
    if not made.exists():
        made.parent.mkdir(exist_ok=True)
        part = made.with_name(f"{installed}.{os.getpid()}")
        metadata = part / f"landbridge-{installed}.dist-info" / "METADATA"
        metadata.parent.mkdir(parents=True)
        metadata.write_text(f"Metadata-Version: 2.4\nName: landbridge\nVersion: {installed}\n")
        try:
            part.rename(made)
        except OSError:  # another worker was first
            shutil.rmtree(part)
    return made


def _debian_packages(folder: Path, contents: Contents) -> list[Path]:
    """The packages, by an apt whose sources, lists and architecture are its own: the machine's stay as they are."""
    for part in ("state/lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True)
    (folder / "state" / "status").touch()
    (folder / "sources.list").write_text(f"deb {_repository()} {contents.release} main\n")
    options = [
        f"-oAPT::Architecture={contents.architecture}",
        f"-oAPT::Architectures::={contents.architecture}",
        f"-oDir::Etc::sourcelist={folder}/sources.list",
        "-oDir::Etc::sourceparts=-",
        f"-oDir::State={folder}/state",
        f"-oDir::State::status={folder}/state/status",
        f"-oDir::Cache={folder}/cache",
        "-oAPT::Sandbox::User=",
    ]
    _run("apt-get", *options, "update", "-qq")
    _run("apt-get", *options, "download", "-qq", *contents.debian, cwd=folder)
    return sorted(folder.glob("*.deb"))


def _link_alternatives(folder: Path) -> None:
    """Link the libraries of which Debian has several, as its installer would."""
    for library in (folder / "usr" / "lib").glob("*-linux-*/*/lib*.so.3"):
        (library.parents[1] / library.name).symlink_to(library.relative_to(library.parents[1]))


def _repository() -> str:
    """Where this machine's Debian has its packages."""
    targets = _run("apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(ORIGIN)", "Created-By: Packages")
    for line in targets.splitlines():
        uri, suite, origin = line.split(maxsplit=2)
        if origin == "Debian" and suite == _HERE:
            return uri
    raise RuntimeError(f"apt knows no repository of Debian {_HERE}; this is for it alone")


def _install(python_version: str, pinned: list[str], site: Path) -> None:
    platforms = [option for platform in _PLATFORMS for option in ("--platform", platform)]
    pip = [sys.executable, "-P", "-m", "pip", "install", "--quiet", "--only-binary=:all:"]
    _run(*pip, *platforms, "--python-version", python_version, "--target", str(site), *pinned)


def _run(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:4])} ... failed: {done.stderr.strip()[-500:]}")
    return done.stdout
