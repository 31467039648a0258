"""Runs one target under atheris, its landbridge instrumented: ``python tests/fuzz/harness.py fuzz_lbx [options]``.

A target is a module with ``SEEDS``, inputs to start from; ``check(data)``, which raises where ``data`` is handled
wrongly; and ``INSTRUMENT``, the packages whose branches guide the search. Options are libFuzzer's, such as
``-max_total_time=600``; a directory among them is a corpus that grows.
"""

from __future__ import annotations

import importlib
import os
import resource
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

#: Bytes of address space: an absurd allocation fails instead of taking the machine.
_ADDRESS_SPACE = 16 << 30


def restart_under_atheris(file: str) -> NoReturn:
    """Run the target in ``file`` again, from the start, so that its imports are instrumented."""
    os.execv(sys.executable, [sys.executable, __file__, Path(file).stem, *sys.argv[1:]])


def main(name: str, *options: str) -> None:
    """Fuzz the target called ``name`` until it fails or ``options`` end it."""
    import atheris

    target = importlib.import_module(name)  # once as it is, for the names of what to instrument and all of numpy
    packages = list(target.INSTRUMENT)
    for module in [m for m in sys.modules if m == name or m.partition(".")[0] in packages]:
        del sys.modules[module]
    with atheris.instrument_imports(include=packages):
        target = importlib.import_module(name)
        for seed in target.SEEDS:  # what is imported on first use
            target.check(seed)
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    with tempfile.TemporaryDirectory() as seeds:
        for number, seed in enumerate(target.SEEDS):
            Path(seeds, f"seed-{number}").write_bytes(seed)
        atheris.Setup([sys.argv[0], *options, seeds], target.check)
        atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
