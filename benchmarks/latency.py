"""The tested models against onnxruntime, interleaved in one process, on one thread and on all.

python benchmarks/latency.py [--rounds 30]
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np
import onnxruntime

import landbridge as lb

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples" / "ocr")]

from measure import interleaved, write  # noqa: E402
from tests.whole_models.random_weights import with_random_weights  # noqa: E402
from tests.whole_models.real_input import line_of_text, picture_for_detector, speech  # noqa: E402
from wheel_models import CLASSIFY, DETECT, PP_OCR, RECOGNIZE, wheel_model  # noqa: E402


def cases() -> dict[str, tuple[bytes, dict[str, np.ndarray]]]:
    """Model bytes and inputs by name."""
    photo = picture_for_detector(224, 224)
    found = {
        "PP-OCRv4 det 320x320": (wheel_model(PP_OCR, DETECT).read_bytes(), {"x": picture_for_detector(320, 320)}),
        "PP-OCRv4 cls 48x192": (wheel_model(PP_OCR, CLASSIFY).read_bytes(), {"x": line_of_text(48, 192)}),
        "PP-OCRv4 rec 48x320": (wheel_model(PP_OCR, RECOGNIZE).read_bytes(), {"x": line_of_text(48, 320)}),
    }
    for name, source in (("squeezenet", "data_0"), ("resnet50", "gpu_0/data_0"), ("shufflenet", "gpu_0/data_0")):
        inputs = {source: photo}
        found[name] = (with_random_weights(name, inputs).SerializeToString(), inputs)
    state, rate = np.zeros((2, 1, 128), np.float32), np.array(16000, np.int64)
    found["silero VAD step"] = (
        wheel_model("silero-vad==6.2.3", "silero_vad_op18_ifless.onnx").read_bytes(),
        {"input": speech(576)[None].copy(), "sr": rate, "state": state},
    )
    return found


def peer(model: bytes, threads: int) -> onnxruntime.InferenceSession:
    """onnxruntime as it is used: all its optimizations."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--only", default="", help="a part of the names of the models to measure")
    options = parser.parse_args()
    rows = []
    everything = len(os.sched_getaffinity(0))
    for name, (model, inputs) in cases().items():
        if options.only not in name:
            continue
        began = time.perf_counter()
        executable = lb.compile(model, shapes={key: array.shape for key, array in inputs.items()})
        compile_s = time.perf_counter() - began
        for threads in sorted({1, everything}):
            session, other = lb.Session(executable, num_threads=threads), peer(model, threads)
            for key, array in inputs.items():
                session.set_input_zero_copy(key, array)
            both = {"ours": session.run, "theirs": lambda o=other, i=inputs: o.run(None, i)}
            spent = interleaved(both, options.rounds, settle_seconds=0.05)
            ours, theirs = spent["ours"] * 1e3, spent["theirs"] * 1e3
            (memory,) = executable.memory or (None,)
            planned = "none" if memory is None else f"{memory.planned_bytes / 1e6:.2f}"
            bound = "none" if memory is None else f"{memory.lower_bound_bytes / 1e6:.2f}"
            rows.append((name, threads, ours, theirs, ours / theirs, compile_s, planned, bound))
            print(rows[-1], flush=True)
    columns = ("model", "threads", "ms", "onnxruntime ms", "ratio", "compile s", "planned MB", "lower bound MB")
    write("latency", columns, rows)


if __name__ == "__main__":
    main()
