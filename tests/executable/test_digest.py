"""Python's SHA-256 and OpenSSL's are one, and neither is loaded before it is needed."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import numpy as np
import pytest

from landbridge.executable import digest


@pytest.mark.parametrize("sizes", [(), (0,), (3, 0, 70), (1 << 19,), (1 << 19, 1), (1, 1 << 20, 5)])
def test_it_is_that_of_hashlib(sizes):
    pieces = [np.random.default_rng(i).bytes(size) for i, size in enumerate(sizes)]
    wanted = hashlib.sha256(b"".join(pieces)).digest()
    assert digest.sha256(pieces) == wanted
    assert digest.sha256(memoryview(piece) for piece in pieces) == wanted


def test_without_modules_of_python_it_is_openssl():
    assert digest._package_code("no_such_module") is hashlib.sha256
    assert digest._package_code("json") is hashlib.sha256


def test_openssl_is_loaded_for_much_alone():
    program = (
        "import sys; from landbridge.executable.digest import sha256; "
        "sha256([b'a']); assert 'hashlib' not in sys.modules; sha256([bytes(1 << 20)]); assert 'hashlib' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
