"""``pytest --pyargs landbridge.testing --device NAME``: the option, which other runs of pytest do not get.

Projects have options of that name, too; this one exists where the suite is asked for and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def pytest_load_initial_conftests(early_config: Any, parser: Any, args: Sequence[str]) -> None:
    """Add ``--device`` and ``--device-timeout`` where the tests of this package are asked for."""
    if "--pyargs" in args and any(arg.split("::")[0].startswith("landbridge.testing") for arg in args):
        group = parser.getgroup("landbridge")
        group.addoption("--device", metavar="NAME", help="the device whose conformance is tested: name[:index]")
        group.addoption(
            "--device-timeout", type=float, metavar="SECONDS", help="after which a test of the device hangs"
        )
