"""A pytest plugin that runs tests with operators watched or broken: ``-p tests.operators.broken_plugin``.

``--note-operators FILE`` writes which implementations each passed test uses, and its seconds, as JSON.
``--break-operators FILE`` runs each test of that file, lines of ``KEY = TEST``, with the implementation KEY broken. A
test passes if it notices that: one of its comparisons fails. ``--broken-report FILE`` writes what each did, as JSON.
"""

from __future__ import annotations

import json
import time
import traceback
from collections import defaultdict
from pathlib import Path

import pytest

import landbridge
from tests.operators.broken import watched

_PACKAGE = Path(landbridge.__file__).parent
_NOTICED = "noticed"

_uses: dict[str, tuple[float, list[str]]] = {}
_outcomes: list[tuple[str, str, str]] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    for option in ("--note-operators", "--break-operators", "--broken-report"):
        parser.addoption(option, type=Path)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    file = config.getoption("--break-operators")
    if file is not None:
        listed = _keys_by_test(file)
        items[:] = [item for item in items if item.nodeid in listed]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    test = pyfuncitem.nodeid
    if pyfuncitem.config.getoption("--note-operators") is not None:
        used: set[str] = set()
        began = time.perf_counter()
        with watched("", used.add):
            _call(pyfuncitem)
        _uses[test] = (time.perf_counter() - began, sorted(used))
        return True
    file = pyfuncitem.config.getoption("--break-operators")
    if file is None:
        return None
    wrong = []
    for key in _keys_by_test(file)[test]:
        outcome = _outcome(pyfuncitem, key)
        _outcomes.append((key, test, outcome))
        if outcome != _NOTICED:
            wrong.append(f"with {key} broken: {outcome}")
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)
    return True


def pytest_sessionfinish(session: pytest.Session) -> None:
    for option, content in (("--note-operators", _uses), ("--broken-report", _outcomes)):
        file = session.config.getoption(option)
        if file is not None:
            file.write_text(json.dumps(content))


def _outcome(item: pytest.Function, key: str) -> str:
    """``noticed`` where a comparison of the test fails when the implementation is broken, else what happens."""
    used: list[str] = []
    try:
        with watched(key, used.append):
            _call(item)
    except AssertionError as error:
        where = Path(traceback.extract_tb(error.__traceback__)[-1].filename)
        if where.is_relative_to(_PACKAGE):
            return f"an assertion of {where.name} fails"
        return _NOTICED if key in used else "it fails without a call of the implementation"
    except (Exception, pytest.fail.Exception) as error:
        return f"it ends with {type(error).__name__} before it compares: {str(error)[:200]}"
    return "it passes" if key in used else "it passes, and does not use the implementation"


def _call(item: pytest.Function) -> None:
    """As pytest does."""
    item.obj(**{name: item.funcargs[name] for name in item._fixtureinfo.argnames})


def _keys_by_test(file: Path) -> dict[str, list[str]]:
    from tests.operators.tested_by import read_pairs

    found: dict[str, list[str]] = defaultdict(list)
    for key, test in read_pairs(file):
        found[test].append(key)
    return found
