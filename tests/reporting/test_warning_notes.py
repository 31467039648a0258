"""Warnings name the line that called the package."""

from __future__ import annotations

from pathlib import Path

import pytest

import landbridge as lb
from landbridge.errors import ModelWarning, ThreadCountWarning
from landbridge.reporting.warning_notes import NotedWarning, noting, tell_again, warn

IR_TEXT = """builtin.module {
  func.func @main(%0: tensor<4xf32, #lb.vdevice<0, "global">>) -> tensor<4xf32, #lb.vdevice<0, "global">> attributes {lb.input_names = ["x"], lb.output_names = ["y"]} {
    %1 = "lb.constant"() {symbol = @b} : () -> tensor<4xf32, #lb.vdevice<0, "global">>
    func.return %1 : tensor<4xf32, #lb.vdevice<0, "global">>
  }
}
"""  # noqa: E501


def test_of_a_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANDBRIDGE_CACHE", str(tmp_path))
    for _ in range(2):  # the second is kept, and its warning told again
        with pytest.warns(ModelWarning, match="holds none") as reported:
            executable = lb.compile(IR_TEXT)
        assert reported[0].filename == __file__
    with pytest.warns(ThreadCountWarning) as reported:
        lb.Session(executable, num_threads=4096)
    assert reported[0].filename == __file__


def test_noted_and_reported_again() -> None:
    with pytest.warns(ModelWarning) as reported, noting() as notes:
        warn("a", ModelWarning)
        tell_again(NotedWarning("ModelWarning", "b"))
    assert notes == [NotedWarning("ModelWarning", "a")]
    assert [(w.filename, str(w.message)) for w in reported] == [(__file__, "a"), (__file__, "b")]
