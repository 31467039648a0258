"""A Linux kernel to emulate: Debian's, with what builds modules for it, unpacked and never installed.

Of Debian's backports, because the release's own kernel has neither dma-heap nor udmabuf.
"""

from __future__ import annotations

import fcntl
import lzma
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.emulated.architecture import AMD64, Architecture

_DEPENDS = re.compile(rb"\0depends=([\w,-]*)\0")


@dataclass(frozen=True)
class Kernel:
    """What was unpacked to ``folder``; ``release`` as ``uname -r`` says it."""

    folder: Path
    release: str
    architecture: Architecture = AMD64

    @property
    def image(self) -> Path:
        """What QEMU boots."""
        return self.folder / "boot" / f"vmlinuz-{self.release}"

    @property
    def headers(self) -> Path:
        """What modules are built with."""
        return self.folder / "usr" / "src" / f"linux-headers-{self.release}"

    def modules(self, *names: str) -> list[tuple[str, bytes]]:
        """The modules called ``names``, each after those it depends on, as (name, ELF file)."""
        files = {path.name.partition(".")[0].replace("-", "_"): path for path in self._modules.rglob("*.ko.xz")}
        found: dict[str, bytes] = {}

        def add(name: str) -> None:
            if name not in found:
                content = lzma.decompress(files[name].read_bytes())
                depends = _DEPENDS.search(content)
                for other in filter(None, depends[1].decode().split(",") if depends is not None else ()):
                    add(other.replace("-", "_"))
                found[name] = content

        for name in names:
            add(name)
        return list(found.items())

    @property
    def _modules(self) -> Path:
        return self.folder / "lib" / "modules" / self.release


def fetch(cache: Path, architecture: Architecture = AMD64) -> Kernel:
    """Returns the kernel in ``cache``, brought there by apt where it is missing; raises RuntimeError with apt's words.

    Of several processes that lack it, one fetches it and the others wait.
    """
    folder = cache / architecture.cache
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{architecture.cache}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # ends with the process that holds it
        if not folder.exists():
            unpacking = cache / f"{architecture.cache}.part"
            shutil.rmtree(unpacking, ignore_errors=True)
            unpacking.mkdir()
            _unpack(unpacking, folder, architecture)
            unpacking.rename(folder)
    (image,) = (folder / "boot").glob("vmlinuz-*")
    return Kernel(folder, image.name.removeprefix("vmlinuz-"), architecture)


def _unpack(unpacking: Path, folder: Path, architecture: Architecture) -> None:
    """Unpack the packages to ``unpacking``, as they will be used in ``folder``."""
    for package in _download(unpacking / "apt", architecture):
        _run("dpkg-deb", "-x", str(package), str(unpacking))
    shutil.rmtree(unpacking / "apt")
    for makefile in (unpacking / "usr" / "src").glob("linux-headers-*/Makefile"):
        makefile.write_text(makefile.read_text().replace("/usr/src", f"{folder}/usr/src"))


def _download(folder: Path, architecture: Architecture) -> list[Path]:
    """The packages, by an apt whose sources and lists are in ``folder``, so that the machine's own stay as they are.

    The programs that build modules are those of this machine.
    """
    for part in ("lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True)
    here = _run("dpkg", "--print-architecture").strip()
    architectures = sorted({here, architecture.debian})
    (folder / "sources.list").write_text(f"deb [arch={','.join(architectures)}] {' '.join(_backports())} main\n")
    options = [
        f"-oDir::Etc::sourcelist={folder}/sources.list",
        "-oDir::Etc::sourceparts=-",
        f"-oDir::State::lists={folder}/lists",
        f"-oDir::Cache={folder}/cache",
        "-oAPT::Sandbox::User=",
        *(f"-oAPT::Architectures::={name}" for name in architectures),
    ]
    _run("apt-get", *options, "update", "-qq")
    of = architecture.debian
    image, headers = (_dependencies(options, f"{name}:{of}")[0] for name in architecture.packages)
    building = [name.strip("<>").partition(":")[0] for name in _dependencies(options, headers)]
    common = [f"{name}:{here}" for name in building if name.startswith(("linux-headers", "linux-kbuild"))]
    _run("apt-get", *options, "download", "-qq", image, headers, *common, cwd=folder)
    return sorted(folder.glob("*.deb"))


def _backports() -> tuple[str, str]:
    """Where this machine's Debian has its packages, and the name of its backports."""
    targets = _run("apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(ORIGIN)", "Created-By: Packages")
    for line in targets.splitlines():
        uri, suite, origin = line.split(maxsplit=2)
        if origin == "Debian" and "-" not in suite:
            return uri, f"{suite}-backports"
    raise RuntimeError("apt knows no repository of Debian's; this is for Debian alone")


def _dependencies(options: list[str], package: str) -> list[str]:
    lines = (line.strip(" |").partition(": ") for line in _run("apt-cache", *options, "depends", package).splitlines())
    return [name for kind, _, name in lines if kind == "Depends"]


def _run(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:2])} ... failed: {done.stderr.strip()[-500:]}")
    return done.stdout
