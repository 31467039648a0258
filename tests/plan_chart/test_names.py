"""Names of nodes in little room."""

from __future__ import annotations

import pytest

from landbridge.plan_chart.names import common_prefix, shortened, without_prefix


def test_the_word_before_every_name_is_found() -> None:
    names = ["p2o.Conv.0+p2o.Add.1", *(f"p2o.Conv.{n}" for n in range(1, 9)), "pack"]
    assert common_prefix(names) == "p2o."  # not "p2o.Conv.": numbers would be left
    assert without_prefix(names[0], "p2o.") == "Conv.0+Add.1"
    assert without_prefix("pack", "p2o.") == "pack"
    assert common_prefix(["/model/a/Conv", "/model/b/Conv"]) == "/model/"
    assert common_prefix(["a.x", "b.x"]) == common_prefix([]) == ""


@pytest.mark.parametrize(
    ("name", "characters", "short"),
    [
        ("conv", 4, "conv"),
        ("conv+relu", 9, "conv+relu"),
        ("conv+relu", 8, "conv+…"),
        ("conv+relu", 5, "conv"),
        ("encoder.layer.11", 9, "enco…r.11"),
        ("encoder", 1, "…"),
    ],
)
def test_names_are_shortened(name: str, characters: int, short: str) -> None:
    assert shortened(name, characters) == short
    assert len(short) <= characters
