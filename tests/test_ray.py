"""Programs in actors of Ray: batches give what a Session gives, arrays of its store are not copied."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from onnx import TensorProto, helper

import landbridge as lb
from landbridge.errors import InputError
from tests.selection.installed import package

ray = package("ray", "peers")
Model: Any = package("landbridge.ray", "peers").Model
share: Any = package("landbridge.ray", "peers").share
EXAMPLES = Path(__file__).parents[1] / "examples"


def program(rows: int | str, second: int | str | None = None) -> lb.Executable:
    """y = relu(x), z = -w, of ``rows`` rows, those of w ``second``."""
    shapes = {"x": (rows, 3), "w": (rows if second is None else second, 2)}
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Neg", ["w"], ["z"])]
    values = {"x": shapes["x"], "y": shapes["x"], "w": shapes["w"], "z": shapes["w"]}
    infos = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in values.items()}
    graph = helper.make_graph(nodes, "two", [infos["x"], infos["w"]], [infos["y"], infos["z"]])
    return lb.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))


def batch(rows: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(rows)
    x, w = (rng.standard_normal((rows, n)).astype(np.float32) for n in (3, 2))
    return {"name": np.array([f"r{n}" for n in range(rows)]), "x": x, "w": w}


def check(results: dict[str, Any], given: dict[str, np.ndarray]) -> None:
    np.testing.assert_array_equal(results["y"], np.maximum(given["x"], 0))
    np.testing.assert_array_equal(results["z"], -given["w"])


@pytest.mark.parametrize("rows", ["N", 1, 4])
def test_batches_of_any_number_of_rows(rows: int | str, tmp_path: Path) -> None:
    program(rows).save(tmp_path / "two.lbx")
    model = Model(tmp_path / "two.lbx", keep=["name"])
    results = [(model(given := batch(count)), given) for count in (1, 4, 7, 8)]
    for result, given in results:  # earlier results are not overwritten by later calls
        check(result, given)
        assert list(result["name"]) == list(given["name"])
    assert model.bytes_copied == 0


def test_what_does_not_fit(tmp_path: Path) -> None:
    program(4).save(tmp_path / "two.lbx")
    with pytest.raises(InputError, match="no column w; it has x"):
        Model(tmp_path / "two.lbx")({"x": np.zeros((4, 3), np.float32)})
    program(4, 5).save(tmp_path / "other.lbx")
    with pytest.raises(InputError, match="has to be the rows of a batch"):
        Model(tmp_path / "other.lbx")


@pytest.fixture
def cluster() -> Iterator[None]:
    ray.init(num_cpus=2, logging_level="error", log_to_driver=False, include_dashboard=False)
    yield
    ray.shutdown()


@pytest.mark.full
def test_actors_share_a_program_and_read_the_store_in_place(cluster: None) -> None:
    shared, given = share(program("N")), batch(64)
    actors = [ray.remote(num_cpus=0.5)(Model).remote(shared) for _ in range(2)]
    stored = ray.put(given)
    results = ray.get([actor.__call__.remote(stored) for actor in actors], timeout=120)
    for result in results:
        check(result, given)


@pytest.mark.full
def test_the_example_copies_nothing(tmp_path: Path) -> None:
    picture = cv2.imread(str(EXAMPLES / "ocr" / "picture.jpg"))
    for number in range(6):
        cv2.imwrite(str(tmp_path / f"{number}.png"), picture[40 : 88 + number, 30:230])
    command = [sys.executable, EXAMPLES / "ray" / "upright.py", tmp_path, "--workers", "1"]
    child = subprocess.run(command, capture_output=True, text=True, timeout=400)
    assert child.returncode == 0, child.stderr
    assert child.stdout.count(".png ") == 6 and "6 pictures in " in child.stdout
    assert "bytes copied: 0" in child.stdout
