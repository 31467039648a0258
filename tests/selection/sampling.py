"""Which tests run: a sample of large families by default, all of them with ``--full``.

``@pytest.mark.sample(40)`` on a parametrized test keeps 40 of its cases, drawn by ``--sample-seed``; the draw of a
test does not depend on which others are collected. ``@pytest.mark.full`` is a test that only ``--full`` runs. What is
left out is deselected, never skipped: a skip says that something is missing.
"""

from __future__ import annotations

from collections import defaultdict
from random import Random

import pytest


def add_options(parser: pytest.Parser) -> None:
    """``--full`` and ``--sample-seed``."""
    parser.addoption("--full", action="store_true", help="run every case of every family, and the long tests")
    parser.addoption("--sample-seed", default="0", help="which cases of large families run without --full")


def left_out(config: pytest.Config, items: list[pytest.Item]) -> list[pytest.Item]:
    """The items that this run leaves out."""
    if config.getoption("--full"):
        return []
    seed = config.getoption("--sample-seed")
    families: dict[str, list[pytest.Item]] = defaultdict(list)
    out = [item for item in items if item.get_closest_marker("full")]
    for item in items:
        if item.get_closest_marker("sample") and not item.get_closest_marker("full"):
            families[item.nodeid.partition("[")[0]].append(item)
    for name, members in families.items():
        marker = members[0].get_closest_marker("sample")
        assert marker is not None
        (count,) = marker.args
        if len(members) > count:
            kept = set(Random(f"{seed} {name}").sample([item.nodeid for item in members], count))
            out.extend(item for item in members if item.nodeid not in kept)
    return out
