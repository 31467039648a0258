"""Changes apply to what the code does, however it is written, and to one place only."""

from __future__ import annotations

import ast

import pytest

from tests.testing.mutations import (
    Assign,
    Begin,
    Change,
    Drop,
    If,
    MutantDoesNotApplyError,
    Nth,
    Pass,
    Put,
    Return,
    Text,
    Without,
    mutated,
)

SOURCE = '''
class Door:
    """A door."""

    def open(self, key, who=None):
        """Open it."""
        if key.fits and not self.locked:  # a comment
            self.state, self.by = "open", who
            ring(
                self.bell, times=1
            )
        self.locked = False
        log(self.bell)
        return self.state
'''


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (Put("'open'", "'shut'"), "self.state, self.by = ('shut', who)"),
        (Put("ring(...)", "None"), "None"),
        (Put("log(_)", "log(1)"), "log(1)"),
        (Nth(-1, Put("self.bell", "1")), "log(1)"),
        (Drop("log"), "pass"),
        (Drop("by"), "pass"),
        (Assign("locked", "True"), "self.locked = True"),
        (If(("key", "locked")), "if False:"),
        (If("fits", True), "if True:"),
        (Without("not self.locked"), "if key.fits:"),
        (Pass("ring", "times", "2"), "ring(self.bell, times=2)"),
        (Pass("ring", 0, "None"), "ring(None, times=1)"),
        (Return("1"), "return 1"),
        (Begin("who = key"), "who = key"),
    ],
    ids=str,
)
def test_one_place_changes(change: Change, line: str) -> None:
    plain = ast.unparse(ast.parse(SOURCE)).splitlines()
    assert [text.strip() for text in mutated(SOURCE, "Door.open", change).splitlines() if text not in plain] == [line]


@pytest.mark.parametrize(
    ("function", "change"),
    [
        ("Door.open", Drop("bell")),
        ("Door.shut", Drop("log")),
        ("Door", Put("self.bell", "1")),
        ("Door.open", Nth(2, Put("self.bell", "1"))),
        ("Door.open", Pass("log", 1, "1")),
        ("", Text("bell", "1")),
    ],
    ids=str,
)
def test_no_place_or_several_are_refused(function: str, change: Change) -> None:
    with pytest.raises(MutantDoesNotApplyError):
        mutated(SOURCE, function, change)
