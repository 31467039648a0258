"""A host that ssh reaches: an sshd of this user on a port, with keys and a configuration of its own."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

#: The name of the host in the client's configuration.
NAME = "board"
_START_S = 20


class SshServer:
    """An sshd that listens on the loopback interface, and a client's ``ssh`` that knows it as ``board``.

    ``environment``: variables of every session. Close it.
    """

    def __init__(self, sshd: str, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        for name in ("host", "user"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
            subprocess.run(command, check=True, timeout=60)
        shutil.copy(folder / "user.pub", folder / "authorized")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        if os.getuid() == 0:  # sshd of root wants an empty folder there, as Debian's own service makes it
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        variables = " ".join(f'"{name}={value}"' for name, value in environment.items())
        (folder / "sshd_config").write_text(
            f"ListenAddress 127.0.0.1\nPort {self.port}\nHostKey {folder}/host\nPidFile none\nUsePAM no\n"
            f"AuthorizedKeysFile {folder}/authorized\nStrictModes no\nPasswordAuthentication no\n"
            f"KbdInteractiveAuthentication no\nPermitRootLogin yes\nMaxStartups 100\nSetEnv {variables}\n"
        )
        key = (folder / "host.pub").read_text().split()
        (folder / "known").write_text(f"[127.0.0.1]:{self.port} {key[0]} {key[1]}\n")
        self.write_client(f"{folder}/known")
        self._log = (folder / "log").open("w")
        self._process = subprocess.Popen(
            [sshd, "-D", "-e", "-f", str(folder / "sshd_config")], stderr=self._log, stdin=subprocess.DEVNULL
        )
        self._wait()

    def write_client(self, known_hosts: str, user: str | None = None) -> None:
        """Write the ``ssh`` of ``bin``, which trusts the host keys in a file and logs in as this user, or another."""
        (self.folder / "config").write_text(
            f"Host {NAME}\n HostName 127.0.0.1\n Port {self.port}\n User {user or getpass.getuser()}\n"
            f" IdentityFile {self.folder}/user\n IdentitiesOnly yes\n UserKnownHostsFile {known_hosts}\n"
            " GlobalKnownHostsFile none\n StrictHostKeyChecking yes\n"
        )
        program = self.bin / "ssh"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {self.folder}/config "$@"\n')
        program.chmod(0o755)

    @property
    def bin(self) -> Path:
        """A folder for PATH."""
        return self.folder / "bin"

    def _wait(self) -> None:
        end = time.monotonic() + _START_S
        while time.monotonic() < end and self._process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError(f"sshd does not answer: {(self.folder / 'log').read_text()}")

    def close(self) -> None:
        """End it, and the sessions with it."""
        self._process.terminate()
        self._process.wait(timeout=_START_S)
        self._log.close()
