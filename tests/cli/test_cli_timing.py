"""``landbridge trace`` and ``bench``: what they write and print; how long things take is no matter of tests."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from landbridge.cli.bench import interleaved, median_interval
from landbridge.cli.peers import largest_difference
from tests.cli.command_line import invoke
from tests.selection.installed import package
from tests.vm import programs
from tests.whole_models.small_models import add

WIDE = {"COLUMNS": "200", "NO_COLOR": "1"}


@pytest.fixture
def compiled(tmp_path: Path) -> Path:
    """y = 2 (a + b), in three kernels."""
    file = tmp_path / "two_stages.lbx"
    programs.two_stages().save(file)
    return file


@pytest.fixture
def model(tmp_path: Path) -> Path:
    file = tmp_path / "add.onnx"
    onnx.save(add(), file)
    return file


def test_trace_draws_the_timeline(compiled: Path, tmp_path: Path) -> None:
    svg, html = tmp_path / "t.svg", tmp_path / "t.html"
    done = invoke(["trace", str(compiled), "-o", str(tmp_path / "t.json"), "--svg", str(svg), "--html", str(html)])
    assert done.exit_code == 0, done.output
    count = len(json.loads((tmp_path / "t.json").read_text())["traceEvents"])
    assert 1 <= svg.read_text().count("<title>") <= count
    assert html.read_text().count("<tr><td>") == svg.read_text().count("<title>")


def test_trace_writes_a_file_and_lists_the_slowest(compiled: Path, tmp_path: Path) -> None:
    done = invoke(["trace", str(compiled), "--threads", "1"], env=WIDE)
    assert done.exit_code == 0
    file = compiled.with_suffix(".trace.json")
    assert str(file) in done.stderr
    events = json.loads(file.read_text())["traceEvents"]
    kernels = [event["name"] for event in events if event["ph"] == "X"]
    assert len(kernels) == 3
    assert all(name in done.stdout for name in kernels)
    assert any(event["ph"] == "C" for event in events)  # memory in use
    other = tmp_path / "other.json"
    short = invoke(["trace", str(compiled), "-o", str(other), "--top", "1"], env=WIDE)
    assert (short.exit_code, other.exists()) == (0, True)
    assert short.stdout.count("kernel ") < done.stdout.count("kernel ")


def test_trace_as_json(compiled: Path, tmp_path: Path) -> None:
    done = invoke(["trace", str(compiled), "-o", str(tmp_path / "t.json"), "--json"])
    result = json.loads(done.stdout)
    assert result["file"] == str(tmp_path / "t.json")
    assert result["busy_us"] == pytest.approx(sum(event["duration_us"] for event in result["events"]))
    assert [event["category"] for event in result["events"]] == ["kernel"] * 3


def test_bench_interleaves_runs_with_onnxruntime(model: Path) -> None:
    done = invoke(["bench", str(model), "--rounds", "3", "--json"])
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert (result["rounds"], result["results"][0]["threads"]) == (3, 1)
    for entry in result["results"]:
        ours, theirs = entry["landbridge"]["median_ms"], entry["onnxruntime"]["median_ms"]
        assert entry["ratio"] == pytest.approx(ours / theirs)
        for times in (entry["landbridge"], entry["onnxruntime"]):
            assert times["min_ms"] <= times["median_ms"] <= times["p90_ms"] <= times["p99_ms"]
            assert 1e3 / times["p99_ms"] <= times["runs_per_s"] <= 1e3 / times["min_ms"]
    shown = invoke(["bench", str(model), "--rounds", "1", "--threads", "1"], env=WIDE)
    assert "onnxruntime" in shown.stdout and "p99 ms" in shown.stdout


def test_bench_against_several_compares_outputs(model: Path) -> None:
    package("openvino", "peers")
    line = ["bench", str(model), "--against", "onnxruntime,openvino", "--rounds", "3", "--threads", "1", "--pause", "1"]
    (entry,) = json.loads(invoke([*line, "--json"]).stdout)["results"]
    for peer in ("onnxruntime", "openvino"):
        assert entry[peer]["largest_difference"] <= 1e-6
        assert entry[peer]["low_ms"] <= entry[peer]["median_ms"] <= entry[peer]["high_ms"]
        assert entry[peer]["ratio"] == pytest.approx(entry["landbridge"]["median_ms"] / entry[peer]["median_ms"])
    assert entry["ratio"] == max(entry[peer]["ratio"] for peer in ("onnxruntime", "openvino"))  # the faster peer's
    unknown = invoke(["bench", str(model), "--against", "torch"], env=WIDE)
    assert (unknown.exit_code, unknown.stdout, "legal: onnxruntime, openvino" in unknown.stderr) == (1, "", True)


def test_the_largest_difference_is_a_share_of_the_output() -> None:
    a = np.array([1.0, 100.0, np.nan, np.inf])
    assert largest_difference([a], [a]) == 0
    assert largest_difference([a], [np.array([2.0, 100.0, np.nan, np.inf])]) == pytest.approx(0.01)
    assert largest_difference([a], [np.array([1.0, np.nan, np.nan, np.inf])]) == np.inf
    assert largest_difference([a], [np.array([1.25, 101.0, np.nan, np.inf])], ignored=0.5) == pytest.approx(1 / 101)
    assert largest_difference([a], [np.array([1.25, 100.5, np.nan, np.inf])], ignored=0.5) == 0
    assert largest_difference([a], [np.array([1.0, 100.0, np.nan, -np.inf])], ignored=0.5) == np.inf
    assert largest_difference([a], [a[:2]]) == largest_difference([a], []) == np.inf


def test_the_interval_of_a_median_holds_it_19_times_in_20() -> None:
    rng = np.random.default_rng(0)
    for count, least in ((15, 0.93), (30, 0.93), (5, 0.9)):
        intervals = [median_interval(rng.exponential(size=count).tolist()) for _ in range(2000)]
        held = np.mean([low <= np.log(2) <= high for low, high in intervals])
        assert least <= held <= 0.999
    assert median_interval([3.0]) == (3.0, 3.0)


def test_bench_without_a_peer(model: Path, compiled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = invoke(["bench", str(compiled), "--rounds", "1", "--threads", "1", "--json"])
    (entry,) = json.loads(alone.stdout)["results"]
    assert (set(entry), entry["ratio"]) == ({"threads", "landbridge", "ratio"}, None)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    line = ["bench", str(model), "--rounds", "1", "--threads", "1"]
    refused = invoke(line, env=WIDE)
    assert (refused.exit_code, refused.stdout, "pip install onnxruntime" in refused.stderr) == (1, "", True)
    done = invoke([*line, "--alone"], env=WIDE)
    assert (done.exit_code, "landbridge" in done.stdout, "onnxruntime" in done.stdout) == (0, True, False)


def test_bench_of_what_the_peer_cannot_run(tmp_path: Path) -> None:
    foreign = add()
    foreign.graph.node[0].domain = "com.microsoft.none"
    foreign.opset_import.append(onnx.helper.make_opsetid("com.microsoft.none", 1))
    onnx.save(foreign, tmp_path / "foreign.onnx")
    done = invoke(["bench", str(tmp_path / "foreign.onnx")], env=WIDE)
    assert (done.exit_code, done.stdout) == (1, "")


def test_rounds_interleave_actions() -> None:
    order: list[str] = []
    spent = interleaved({name: lambda name=name: order.append(name) for name in "ab"}, rounds=2)
    changes = [name for n, name in enumerate(order) if n == 0 or order[n - 1] != name]
    assert "".join(changes) == "ababab"  # first calls, then two rounds
    assert [len(times) for times in spent.values()] == [2, 2]
