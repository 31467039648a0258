"""optimum's own tests of ONNX models, unchanged, on onnxruntime and on Landbridge in its place.

python benchmarks/optimum_tests.py --python VENV/bin/python --tests optimum-onnx/tests/onnxruntime [--only EXPRESSION]

``VENV`` has optimum-onnx[onnxruntime]==0.1.0, torch, pytest, parameterized, pillow and what landbridge[compile] needs;
``--tests`` is a folder of the tag v0.1.0 of github.com/huggingface/optimum-onnx. The tests name models of the hub,
whose weights are random: random_weight_hub.py makes models of the same names and architectures, so that nothing is
downloaded. ``EXPRESSION`` is one of ``pytest -k``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

from measure import write

HERE = Path(__file__).resolve().parent
FOLDER = Path(os.environ.get("LANDBRIDGE_MODELS", Path.home() / ".cache" / "landbridge")) / "optimum"
FILES = ("test_decoder.py", "test_modeling.py")
#: Comparisons with transformers in torch, of models that take text alone: logits, caches, generation, beam search.
ONLY = "(Causal or Masked or Question) and to_transformers"
PLUGIN = "from landbridge.onnxruntime import install_as_onnxruntime\ninstall_as_onnxruntime()\n"


def outcomes(python: str, tests: Path, only: str, *, swapped: bool) -> dict[str, str]:
    """Runs the tests and returns ``passed``, ``failed`` or ``skipped`` for each, by its class and name."""
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "module_swap.py").write_text(PLUGIN if swapped else "")
        environment = {
            **os.environ,
            "PYTHONPATH": f"{scratch}:{HERE.parent / 'src'}",
            "HF_HOME": str(FOLDER),
            "HF_HUB_OFFLINE": "1",
            "OMP_NUM_THREADS": "1",
            "LANDBRIDGE_CACHE": str(FOLDER / "compiled"),
        }
        report = Path(scratch) / "report.xml"
        command = [python, "-m", "pytest", "-q", "-W", "ignore", "-p", "module_swap", "-p", "no:cacheprovider"]
        command += ["-k", only, f"--junitxml={report}", *FILES]
        done = subprocess.run(command, cwd=tests.resolve(), env=environment, capture_output=True, text=True)
        if done.returncode not in (0, 1):
            raise SystemExit(f"pytest ran no tests: {done.stderr or done.stdout}"[:2000])
        found = {}
        for case in ElementTree.parse(report).iter("testcase"):
            kinds = {child.tag for child in case}
            outcome = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
            found[f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"] = outcome
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", required=True)
    parser.add_argument("--tests", type=Path, required=True)
    parser.add_argument("--only", default=ONLY)
    options = parser.parse_args()
    hub = FOLDER / "hub"
    subprocess.run([options.python, HERE / "random_weight_hub.py", hub, options.tests], check=True)
    theirs, ours = (outcomes(options.python, options.tests, options.only, swapped=swapped) for swapped in (False, True))
    rows: list[list[object]] = []
    for name in sorted({each.partition("::")[0] for each in theirs}):
        cases = [case for case in theirs if case.startswith(f"{name}::")]
        counts = [Counter(side.get(case, "failed") for case in cases) for side in (theirs, ours)]
        lost = [case for case in cases if theirs[case] == "passed" and ours.get(case) != "passed"]
        words = ", ".join(case.partition("::")[2] for case in lost) or "none"
        rows.append([name, len(cases), *(count["passed"] for count in counts), words])
    columns = ("class of tests", "tests", "pass on onnxruntime", "pass on Landbridge", "only on onnxruntime")
    write("optimum_tests", columns, rows)


if __name__ == "__main__":
    main()
