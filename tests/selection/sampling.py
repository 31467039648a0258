"""Which tests run: a sample of large families by default, all of them with ``--full``.

``@pytest.mark.sample(40)`` on a parametrized test keeps 40 of its cases, drawn by ``--sample-seed``; the draw of a
test does not depend on which others are collected. ``@pytest.mark.full`` is a test that only ``--full`` runs. What is
left out is deselected, never skipped: a skip says that something is missing.

``--full --share K/N`` runs of what a sample leaves out only part K of N, K being any number; the parts 0 to N - 1
together are all. A family of ``sample(40, shared=False)`` is whole in each; one of ``sample(40, rarer=3)``, whose cases
take long and repeat each other much, is divided into 3 * N parts.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from random import Random
from zlib import crc32

import pytest


def add_options(parser: pytest.Parser) -> None:
    """``--full``, ``--share`` and ``--sample-seed``."""
    parser.addoption("--full", action="store_true", help="run every case of every family, and the long tests")
    parser.addoption(
        "--share", type=_share, default=None, metavar="K/N", help="part K of N of what a sample leaves out"
    )
    parser.addoption("--sample-seed", default="0", help="which cases of large families run without --full")


def is_in_share(config: pytest.Config, item: pytest.Item) -> bool:
    """Whether ``item`` is of the part that ``--share`` names; all are where it names none."""
    part, parts = config.getoption("--share") or (0, 1)
    return crc32(item.nodeid.encode()) % parts == part % parts


def _share(text: str) -> tuple[int, int]:
    part, slash, parts = text.partition("/")
    if not (slash and part.isdecimal() and parts.isdecimal() and int(parts)):
        raise argparse.ArgumentTypeError(f"{text!r} is no K/N; legal: 0/2, 1/2 and the like")
    return int(part), int(parts)


def left_out(config: pytest.Config, items: list[pytest.Item]) -> list[pytest.Item]:
    """The items that this run leaves out."""
    full = config.getoption("--full")
    share = config.getoption("--share")
    if full and share is None:
        return []
    part, parts = share if full else (0, 0)
    seed = config.getoption("--sample-seed")
    families: dict[str, list[pytest.Item]] = defaultdict(list)
    out = [item for item in items if item.get_closest_marker("full") and not full]
    for item in items:
        if item.get_closest_marker("sample") and not item.get_closest_marker("full"):
            families[item.nodeid.partition("[")[0]].append(item)
    for name, members in families.items():
        marker = members[0].get_closest_marker("sample")
        assert marker is not None
        (count,) = marker.args
        if len(members) > count:
            retained = set(Random(f"{seed} {name}").sample([item.nodeid for item in members], count))
            rest = (item for item in members if item.nodeid not in retained)
            if full and not marker.kwargs.get("shared", True):
                continue
            of = parts * marker.kwargs.get("rarer", 1)
            out.extend(item for item in rest if not full or crc32(item.nodeid.encode()) % of != part % of)
    return out
