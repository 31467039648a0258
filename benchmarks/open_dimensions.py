"""One program for all sizes against programs of one size each, onnxruntime and OpenVINO, on one thread.

python benchmarks/open_dimensions.py [--rounds 15] [--model magika]   (needs openvino; torch for the sentence encoder)
python benchmarks/open_dimensions.py --write    (the table of what was measured, model by model)
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnxruntime
import openvino

import landbridge as lb

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples" / "ocr")]

from measure import interleaved, write  # noqa: E402
from wheel_models import CLASSIFY, DETECT, PP_OCR, RECOGNIZE, cache_folder, wheel_model  # noqa: E402

Feeds = dict[str, np.ndarray]
SILERO = "silero-vad==6.2.3"
#: No wheel: made here, with random weights.
ENCODER = "MiniLM-L6's sizes, random weights"
RESULTS = cache_folder() / "open_dimensions"


@dataclass(frozen=True)
class Model:
    """A model of a wheel: what is stated of its shapes, and ``feeds``, its inputs where dimensions are ``sizes``."""

    requirement: str
    file: str
    dims: dict[str, str]
    sizes: tuple[dict[str, int], ...]
    feeds: Callable[[dict[str, int]], Feeds]
    shapes: dict[str, tuple[int | str, ...]] | None = None
    #: Of the dimensions one whose values come one after another.
    changing: str = ""
    #: One that has 200 values up to this, in a process of its own.
    growing: tuple[str, int] | None = None


def noise(*shape: int, scale: float = 1.0) -> np.ndarray:
    return (scale * np.random.default_rng(shape[-1]).standard_normal(shape)).astype(np.float32)


def tokens(*shape: int, below: int) -> np.ndarray:
    return np.random.default_rng(shape[-1]).integers(1, below, shape)


def each(name: str, *values: int) -> tuple[dict[str, int], ...]:
    return tuple({name: value} for value in values)


MODELS = {
    "PP-OCRv4 rec": Model(
        PP_OCR,
        RECOGNIZE,
        {"W": "32..2560:8@320"},
        each("W", 32, 136, 320, 640, 1280),
        lambda at: {"x": noise(1, 3, 48, at["W"])},
        {"x": (1, 3, 48, "W")},
        "W",
        ("W", 2560),
    ),
    "PP-OCRv4 cls": Model(
        PP_OCR,
        CLASSIFY,
        {"W": "32..640:8@192"},
        each("W", 32, 136, 192, 640),
        lambda at: {"x": noise(1, 3, 48, at["W"])},
        {"x": (1, 3, 48, "W")},
        "W",
        ("W", 640),
    ),
    "PP-OCRv4 det": Model(
        PP_OCR,
        DETECT,
        {"H": "32..1024:32@320", "W": "32..1024:32@320"},
        ({"H": 96, "W": 320}, {"H": 320, "W": 320}, {"H": 480, "W": 640}),
        lambda at: {"x": noise(1, 3, at["H"], at["W"])},
        {"x": (1, 3, "H", "W")},
        growing=("W", 1024),
    ),
    "magika": Model(
        "magika==0.6.1",
        "model.onnx",
        {"unk__215": "1..64@8"},
        each("unk__215", 1, 8, 32),
        lambda at: {"bytes": tokens(at["unk__215"], 2048, below=256).astype(np.int32)},
        growing=("unk__215", 16),
    ),
    "silero VAD": Model(
        SILERO,
        "silero_vad_16k_op15.onnx",
        {"batch": "1..32@4"},
        each("batch", 1, 4, 17),
        lambda at: {
            "input": noise(at["batch"], 576, scale=0.1),
            "state": np.zeros((2, at["batch"], 128), np.float32),
            "sr": np.array(16000),
        },
        {"input": ("batch", 576)},
        growing=("batch", 32),
    ),
    "SwiftF0": Model(
        "swift-f0==0.3.0",
        "model.onnx",
        {"samples": "1024..64000@16000"},
        each("samples", 4000, 16000, 48001),
        lambda at: {
            "audio": noise(1, at["samples"], scale=0.1),
            "fmin": np.array(50, np.float32),
            "fmax": np.array(2000, np.float32),
        },
        growing=("samples", 64000),
    ),
    "PP-OCRv6 rec small": Model(
        "rapidocr==3.10.0",
        "PP-OCRv6_rec_small.onnx",
        {"W": "32..2560:8@320"},
        each("W", 136, 320),
        lambda at: {"x": noise(1, 3, 48, at["W"])},
        {"x": (1, 3, 48, "W")},
        growing=("W", 1280),
    ),
    "silero VAD, half": Model(
        SILERO,
        "silero_vad_half.onnx",
        {"batch": "1..32@4"},
        each("batch", 1, 17),
        lambda at: {"input": noise(at["batch"], 576, scale=0.1), "state": np.zeros((2, at["batch"], 128), np.float32)},
        {"input": ("batch", 576)},
    ),
    "rxnmap, a transformer": Model(
        "chython-rxnmap==2.0",
        "rxnmap.onnx",
        {"seq_len": "1..512@64"},
        each("seq_len", 16, 64, 100),
        lambda at: {
            "atoms": tokens(1, at["seq_len"], below=20),
            "neighbors": tokens(1, at["seq_len"], below=10),
            "distances": tokens(1, at["seq_len"], at["seq_len"], below=9),
            "roles": tokens(1, at["seq_len"], below=3),
        },
        growing=("seq_len", 100),
    ),
    ENCODER: Model(
        "",
        "sentence_encoder.onnx",
        {"batch": "1..8@1", "length": "1..256@64"},
        tuple({"batch": batch, "length": length} for batch, length in ((1, 12), (1, 64), (1, 200), (8, 30))),
        lambda at: {
            "tokens": tokens(at["batch"], at["length"], below=30000),
            "mask": np.ones((at["batch"], at["length"]), np.int64),
        },
        growing=("length", 256),
    ),
    "name romanizer, decoder": Model(
        "arabic-name-romanizer==0.2.0",
        "decoder.onnx",
        {"batch": "1..8", "tgt_len": "1..64@8", "src_len": "1..64@8"},
        tuple({"batch": 1, "tgt_len": length, "src_len": 9} for length in (1, 8, 30)),
        lambda at: {
            "prefix": tokens(at["batch"], at["tgt_len"], below=100),
            "memory": noise(at["batch"], at["src_len"], 256),
            "src_mask": np.ones((at["batch"], at["src_len"]), bool),
            "hidden": noise(at["batch"], 2, 256),
        },
    ),
}
UNITS = np.random.default_rng(0).integers(4, 81, 64)


def seconds(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def file_of(model: Model) -> Path:
    """The model's file, fetched or made the first time."""
    if model.requirement:
        return wheel_model(model.requirement, model.file)
    created = RESULTS / model.file
    if not created.exists():
        from sentence_encoder import export

        export(created)
    return created


def growth(executable: lb.Executable, name: str, high: int) -> str:
    """What ``growth.py`` says of ``executable`` where dimension ``name`` has values up to ``high``, in MB."""
    dimension = executable.dimensions[name]
    with TemporaryDirectory() as folder:
        file = Path(folder) / "open.lbx"
        executable.save(file)
        values = (dimension.low, high, dimension.multiple_of)
        requested = [sys.executable, str(Path(__file__).parent / "growth.py"), str(file), name, *map(str, values)]
        found = json.loads(subprocess.run(requested, check=True, capture_output=True, text=True).stdout)
    return " / ".join(f"{found[key] / 1e6:.1f}" for key in ("grown", "plan", "weights"))


def peers_of(file: Path) -> dict[str, Callable[[Feeds], Sequence[np.ndarray]]]:
    """Runs by onnxruntime, and OpenVINO where it takes the model, of one thread, in f32."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(file), options)
    config = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32", "NUM_STREAMS": 1}
    peers: dict[str, Callable[[Feeds], Sequence[np.ndarray]]] = {"onnxruntime": lambda feeds: session.run(None, feeds)}
    try:
        compiled = openvino.Core().compile_model(str(file), "CPU", config)
    except RuntimeError:
        return peers
    request = compiled.create_infer_request()

    def by_openvino(feeds: Feeds) -> Sequence[np.ndarray]:
        results = request.infer(feeds, share_inputs=True, share_outputs=True)
        return [results[output] for output in compiled.outputs]

    return peers | {"OpenVINO": by_openvino}


def run_on(session: lb.Session, feeds: Feeds) -> Sequence[np.ndarray]:
    return [np.from_dlpack(found) for found in session(*(feeds[spec.name] for spec in session.inputs))]


def measured(name: str, rounds: int) -> list[tuple[str, str, str]]:
    model = MODELS[name]
    file = file_of(model)
    rows: list[tuple[str, str, str]] = []

    def row(subject: str, value: float | str) -> None:
        rows.append((name, subject, value if isinstance(value, str) else f"{value:.4g}"))
        print(*rows[-1], sep=" | ", flush=True)

    def known_at(at: dict[str, int]) -> lb.Executable:
        return lb.compile(file, shapes={n: array.shape for n, array in model.feeds(at).items()})

    known_at(model.sizes[0])  # what the first compile of a process imports and caches
    began = time.process_time()
    executable = lb.compile(file, shapes=model.shapes, dims=model.dims)
    spent = time.process_time() - began
    began = time.process_time()
    known_at(model.sizes[len(model.sizes) // 2])
    row("compile, open over one size (s of processors)", f"{spent:.2f} / {time.process_time() - began:.2f}")
    peers = peers_of(file)
    session = lb.Session(executable, num_threads=1)
    for at in model.sizes:
        feeds = model.feeds(at)
        known = lb.Session(known_at(at), num_threads=1)
        runs = {"open": lambda s=session, f=feeds: run_on(s, f), "one size": lambda s=known, f=feeds: run_on(s, f)}
        runs |= {peer: lambda run=run, f=feeds: run(f) for peer, run in peers.items()}
        found = {way: [np.array(part) for part in run()] for way, run in runs.items()}
        error = max(
            np.abs(a.astype(np.float64) - b).max()
            for way in ("one size", "onnxruntime")
            for a, b in zip(found["open"], found[way], strict=True)
        )
        times = interleaved(runs, rounds, warm=True)
        shown = ", ".join(f"{dimension}={value}" for dimension, value in at.items())
        figures = " / ".join(f"{times[way] * 1e3:.{3 if times[way] < 1e-3 else 2}f}" for way in runs)
        row(
            f"{shown}: ms {' / '.join(runs)}; open over one size; error",
            f"{figures}; {times['open'] / times['one size']:.2f}; {error:.1e}",
        )
    if model.changing:
        changes(row, model, executable, peers, rounds)
    if model.growing is not None:
        dimension, high = model.growing
        subject = "a process of its own: MB grown / largest plan with its results / weights"
        row(f"200 of {dimension} to {high}, {subject}", growth(executable, dimension, high))
    return rows


def changes(
    row: Callable[[str, float | str], None],
    model: Model,
    executable: lb.Executable,
    peers: dict[str, Callable[[Feeds], Sequence[np.ndarray]]],
    rounds: int,
) -> None:
    """One dimension, of another value at each run."""
    name = model.changing
    fresh = lb.Session(executable, num_threads=1)
    feeds = [model.feeds({name: 8 * int(units)}) for units in UNITS]
    runtimes: list[Callable[[Feeds], object]] = [lambda each: run_on(fresh, each), *peers.values()]
    for visit in ("first visits included", "again"):
        spent = [sum(seconds(lambda f=f, run=run: run(f)) for f in feeds) for run in runtimes]
        row(f"{len(feeds)} of {name}, {visit}: s ours / {' / '.join(peers)}", " / ".join(f"{s:.2f}" for s in spent))
    sizes = iter(range(40, 640, 8))
    new = sorted(seconds(lambda: fresh.prepare(**{name: next(sizes)})) for _ in range(40))
    row("an instance for a new size, ms (median)", new[len(new) // 2] * 1e3)
    (a,), (b,) = (model.feeds({name: value}).values() for value in (320, 160))

    def bind(x: np.ndarray) -> None:
        fresh.set_input_zero_copy(0, x)
        fresh.get_input(0)  # is rebound to its size

    variants = {"a": partial(bind, a), "b": partial(bind, b), "resize": lambda: (bind(a), bind(b))}
    took = interleaved(variants, rounds, calls=1000)
    row(
        "resizing to another known size, us; of it binding",
        f"{took['resize'] / 2e-6:.1f}; {(took['a'] + took['b']) / 2e-6:.1f}",
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--model", action="append", choices=MODELS, help="one of them, repeatable; all if absent")
    parser.add_argument("--write", action="store_true", help="measure nothing: write the table")
    arguments = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name in arguments.model or ([] if arguments.write else MODELS):
        (RESULTS / f"{name}.json").write_text(json.dumps(measured(name, arguments.rounds)))
    if not arguments.model:
        retained = [file for name in MODELS if (file := RESULTS / f"{name}.json").exists()]
        write(
            "open_dimensions",
            ("model", "what", "value"),
            [row for file in retained for row in json.loads(file.read_text())],
        )


if __name__ == "__main__":
    main()
