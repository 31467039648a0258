"""A folder with what an AArch64 board has: Debian's Python and C library, and packages from PyPI.

QEMU's user mode runs its programs here, with no root file system and nothing installed: ``qemu-aarch64 -L folder``.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

#: Debian's packages, with what they need.
_DEBIAN = [
    "python3.11-minimal",
    "libpython3.11-minimal",
    "libpython3.11-stdlib",
    "libc6",
    "libexpat1",
    "zlib1g",
    "libssl3",
    "libffi8",
    "libgcc-s1",
    "libstdc++6",
    "liblzma5",
    "libbz2-1.0",
    "libuuid1",
    "libcrypt1",
]
#: Packages in the versions that are installed here, with what they need: what runs programs, and what tests ask for.
_RUNNING = ("numpy", "typer", "rich", "ml-dtypes", "apache-tvm-ffi")
#: What the compiler needs beside them, in a folder of its own.
_COMPILING = ("xdsl", "onnx", "onnx-ir", "llvmlite")
_PLATFORMS = ("manylinux2014_aarch64", "manylinux_2_27_aarch64", "manylinux_2_28_aarch64")
_RELEASE = "bookworm"


def fetch(cache: Path) -> Path:
    """The folder in ``cache``, made there by apt and pip where it is missing.

    Raises RuntimeError with the words of the program that failed.
    """
    running, compiling = ([f"{name}=={version(name)}" for name in names] for names in (_RUNNING, _COMPILING))
    contents = hashlib.sha256(" ".join([*_DEBIAN, *running, "and", *compiling]).encode()).hexdigest()
    folder = cache / f"aarch64-{contents[:12]}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "aarch64.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of several workers one makes it
        if not folder.exists():
            unpacking = cache / "aarch64.part"
            shutil.rmtree(unpacking, ignore_errors=True)
            for package in _debian_packages(unpacking / "apt"):
                _run("dpkg-deb", "-x", str(package), str(unpacking))
            shutil.rmtree(unpacking / "apt")
            _install(running, site_packages(unpacking))
            _install([*running, *compiling], compiler_packages(unpacking))
            unpacking.rename(folder)
    return folder


def python(folder: Path) -> Path:
    """The board's Python."""
    return folder / "usr" / "bin" / "python3.11"


def python_here(folder: Path, qemu: str) -> Path:
    """A script of this machine that runs the board's Python, which that calls itself: a program under QEMU's user mode
    that starts another one starts it on this machine."""
    script = folder / "usr" / "bin" / "python-here"
    if not script.exists():
        part = script.with_name(f"{script.name}.{os.getpid()}")
        part.write_text(f'#!/bin/sh\nexec {qemu} -cpu max -L {folder} -0 "$0" {python(folder)} -S "$@"\n')
        part.chmod(0o755)
        part.rename(script)
    return script


def site_packages(folder: Path) -> Path:
    """Where packages from PyPI lie."""
    return folder / "usr" / "local" / "lib" / "python3.11" / "site-packages"


def compiler_packages(folder: Path) -> Path:
    """Where packages from PyPI lie, those of the compiler among them."""
    return site_packages(folder).with_name("compiler-packages")


def _debian_packages(folder: Path) -> list[Path]:
    """The packages, by an apt whose sources, lists and architecture are its own: the machine's stay as they are."""
    for part in ("state/lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True)
    (folder / "state" / "status").touch()
    (folder / "sources.list").write_text(f"deb {_repository()} {_RELEASE} main\n")
    options = [
        "-oAPT::Architecture=arm64",
        "-oAPT::Architectures::=arm64",
        f"-oDir::Etc::sourcelist={folder}/sources.list",
        "-oDir::Etc::sourceparts=-",
        f"-oDir::State={folder}/state",
        f"-oDir::State::status={folder}/state/status",
        f"-oDir::Cache={folder}/cache",
        "-oAPT::Sandbox::User=",
    ]
    _run("apt-get", *options, "update", "-qq")
    _run("apt-get", *options, "download", "-qq", *_DEBIAN, cwd=folder)
    return sorted(folder.glob("*.deb"))


def _repository() -> str:
    """Where this machine's Debian has its packages."""
    targets = _run("apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(ORIGIN)", "Created-By: Packages")
    for line in targets.splitlines():
        uri, suite, origin = line.split(maxsplit=2)
        if origin == "Debian" and suite == _RELEASE:
            return uri
    raise RuntimeError(f"apt knows no repository of Debian {_RELEASE}; this is for it alone")


def _install(pinned: list[str], site: Path) -> None:
    platforms = [option for platform in _PLATFORMS for option in ("--platform", platform)]
    pip = [sys.executable, "-P", "-m", "pip", "install", "--quiet", "--only-binary=:all:"]
    _run(*pip, *platforms, "--python-version", "3.11", "--target", str(site), *pinned)


def _run(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:4])} ... failed: {done.stderr.strip()[-500:]}")
    return done.stdout
