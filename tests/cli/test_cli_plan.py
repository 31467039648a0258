"""``landbridge plan``: CSV files, models and compiled files; limits, pictures and errors."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from tests.cli.command_line import invoke
from tests.plan_chart.programs import program

TINY = Path(__file__).parents[1] / "planner" / "tiny.csv"
WIDE = {"COLUMNS": "220", "NO_COLOR": "1"}


def _plan(*arguments: object) -> dict[str, Any]:
    done = invoke(["plan", *map(str, arguments), "--json"])
    assert done.exit_code == 0, done.output
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _check(rows: list[tuple[str, int, int, int]], result: dict[str, Any]) -> None:
    """That ``result`` places the buffers (id, start, end, size) of ``rows``; shares no code with the planner."""
    offsets = result["offsets"]
    assert set(offsets) == {name for name, *_ in rows}
    for (a, a_start, a_end, a_size), (b, b_start, b_end, b_size) in combinations(rows, 2):
        if a_start < b_end and b_start < a_end:
            assert offsets[a] + a_size <= offsets[b] or offsets[b] + b_size <= offsets[a], (a, b)
    assert result["peak"] == max(offsets[name] + size for name, _, _, size in rows)
    live = max(sum(s for _, start, end, s in rows if start <= at < end) for _, at, _, _ in rows)
    assert live <= result["lower_bound"] <= result["peak"]


def test_a_csv_file_is_planned() -> None:
    result = _plan(TINY)
    rows = [line.split(",") for line in TINY.read_text().split()[1:]]
    _check([(name, int(lower), int(upper), int(size)) for name, lower, upper, size in rows], result)
    assert (result["peak"], result["lower_bound"], result["proved_optimal"]) == (12, 12, True)
    assert 0 <= result["seconds"] < 30
    (scope,) = result["scopes"]
    assert (scope["device"], scope["scope"], scope["capacity"]) == ("", "", None)
    assert scope["peak_step"] == "0"
    assert set(scope["holders"]) == {"a", "c", "e"}


def test_capacity_is_retained_or_refused() -> None:
    assert _plan(TINY, "--capacity", 12)["scopes"][0]["capacity"] == 12
    refused = invoke(["plan", str(TINY), "--capacity", "11"])
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "12 bytes are needed" in refused.stderr


def test_the_table_says_who_holds_the_most() -> None:
    shown = invoke(["plan", str(TINY)], env=WIDE)
    assert shown.exit_code == 0
    assert "12 B alive at time 0" in shown.stdout
    for row in ("a       4      33 %", "e       4      33 %"):
        assert row in shown.stdout
    assert "No plan of these blocks takes less" in shown.stdout
    assert "and at time 3" in shown.stdout
    assert "at most 8 bytes alive, 4 fewer" in shown.stdout


def test_a_plan_above_its_bound_is_not_called_optimal(tmp_path: Path) -> None:
    # "b" is pinned between what is left for "a": no plan does with the 12 bytes alive at once.
    file = tmp_path / "pinned.csv"
    file.write_text("id,lower,upper,size,alignment,offset\na,0,2,8,1,\nb,0,2,4,1,4\n")
    result = _plan(file, "--budget", 0)
    assert (result["peak"], result["lower_bound"]) == (16, 12)
    shown = invoke(["plan", str(file), "--budget", "0"], env=WIDE)
    expected = "No plan of these blocks takes less" if result["proved_optimal"] else "4 bytes more than the lower bound"
    assert expected in shown.stdout


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Three convolutions with a weight made from the input, so that nothing but their values is alive."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8, 8, 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 8, 1, 1])
    nodes = [
        helper.make_node("MaxPool", ["x"], ["a"], name="first", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("AveragePool", ["a"], ["b"], name="second", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("MaxPool", ["b"], ["c"], name="third", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("GlobalAveragePool", ["c"], ["y"], name="last"),
    ]
    file = tmp_path / "pools.onnx"
    graph = helper.make_graph(nodes, "pools", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), file)
    return file


def test_a_model_is_compiled_and_its_file_says_the_same(model: Path) -> None:
    result = _plan(model, "--shape", "x=2x8x8x8")
    (scope,) = result["scopes"]
    assert (scope["device"], scope["scope"]) == ("cpu", "global")
    rows = [(name, *scope["lifetimes"][name], size) for name, size in scope["sizes"].items()]
    assert {"first", "second"} <= {name for name, *_ in rows}
    _check(rows, result)
    assert invoke(["compile", str(model), "--shape", "x=2x8x8x8"]).exit_code == 0
    stored = _plan(model.with_suffix(".lbx"))
    assert stored | {"file": "", "seconds": 0} == result | {"file": "", "seconds": 0}
    shown = invoke(["plan", str(model.with_suffix(".lbx"))], env=WIDE).stdout
    assert f"{result['peak']:,}" in shown
    assert "second, step 1 of" in shown


def test_a_model_on_two_devices_has_a_plan_for_each(model: Path) -> None:
    result = _plan(model, "--shape", "x=2x8x8x8", "--device", "cpu,sim:lazy", "--place", "second=sim:lazy")
    places = {scope["device"]: set(scope["offsets"]) for scope in result["scopes"]}
    assert set(places) == {"cpu", "sim:lazy"}
    assert "second" in places["sim:lazy"]
    assert "second" not in places["cpu"]


@pytest.fixture
def compiled(tmp_path: Path) -> Path:
    file = tmp_path / "program.lbx"
    program().save(file)
    return file


def test_each_scope_of_a_program_is_shown(compiled: Path) -> None:
    result = _plan(compiled)
    assert [scope["scope"] for scope in result["scopes"]] == ["global", "global.rows"]
    assert (result["peak"], result["lower_bound"], result["proved_optimal"]) == (1024 + 64, 577 + 32, False)
    assert result["offsets"] == {"concat": 64, "flag": 0, "concat#2": 16}
    shown = invoke(["plan", str(compiled)], env=WIDE).stdout
    for words in ("cpu global: 513 B alive at NonZero, step 3 of 8", "cpu global.rows: 32 B alive", "--budget"):
        assert words in shown


def test_a_model_is_planned_again_when_requested_to_or_when_it_must_fit(compiled: Path) -> None:
    assert _plan(compiled, "--budget", 1)["peak"] == 513 + 32
    retained = _plan(compiled, "--capacity", 2000)
    assert [(s["peak"], s["capacity"]) for s in retained["scopes"]] == [(1024, 2000), (64, 2000)]
    tight = _plan(compiled, "--capacity", "global=600")
    assert [(s["peak"], s["capacity"]) for s in tight["scopes"]] == [(513, 600), (64, None)]
    assert invoke(["plan", str(compiled), "--capacity", "global.rows=31"]).exit_code == 1


def test_pictures_are_written(compiled: Path, tmp_path: Path) -> None:
    svg, html = tmp_path / "plan.svg", tmp_path / "plan.html"
    done = invoke(["plan", str(compiled), "--svg", str(svg), "--html", str(html), "--json"])
    assert done.exit_code == 0
    json.loads(done.stdout)
    assert (str(svg) in done.stderr, str(html) in done.stderr) == (True, True)
    for file in (svg, html):
        assert "global.rows" in file.read_text(encoding="utf-8")


def test_nothing_planned_is_reported_and_not_drawn(tmp_path: Path) -> None:
    file, svg = tmp_path / "none.csv", tmp_path / "none.svg"
    file.write_text("id,lower,upper,size\n")
    assert "nothing is planned" in invoke(["plan", str(file)]).stdout
    assert (_plan(file)["peak"], _plan(file)["offsets"]) == (0, {})
    refused = invoke(["plan", str(file), "--svg", str(svg)])
    assert (refused.exit_code, svg.exists()) == (1, False)
    assert "nothing to draw" in refused.stderr


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("a,0,2,x\n", "line 2"),
        ("a,0,2,8\nb,2\n", "line 3"),
        ("a,0,2,8\na,2,3,8\n", "line 3"),
        ("a,0,0,8\n", "line 2"),
        ("a,0,2,-8\n", "line 2"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, rows: str, says: str) -> None:
    file = tmp_path / "bad.csv"
    file.write_text(f"id,lower,upper,size\n{rows}")
    done = invoke(["plan", str(file)])
    assert (done.exit_code, done.stdout) == (1, "")
    assert says in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([str(TINY), "--capacity", "x"], "not a number of bytes"),
        ([str(TINY), "--capacity", "vtcm=8"], "has one scope"),
        ([str(TINY), "--target", "llvm"], "no --target"),
        ([str(TINY), "--place", "a=cpu"], "or --place"),
        ([str(TINY), "--budget", "-1"], "--budget"),
        ([__file__], "legal: .csv, .onnx, .lbx"),
        (["nowhere.csv"], "does not exist"),
    ],
)
def test_wrong_usage(arguments: list[str], says: str) -> None:
    done = invoke(["plan", *arguments], env=WIDE)
    assert (done.exit_code, done.stdout) == (2, "")
    assert says in done.stderr


def test_a_limit_of_a_scope_that_is_not_there(compiled: Path) -> None:
    done = invoke(["plan", str(compiled), "--capacity", "global.vtcm=8"], env=WIDE)
    assert (done.exit_code, "planned are: global, global.rows" in done.stderr) == (2, True)
