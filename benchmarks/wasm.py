"""Models in WebAssembly, run by Wasmtime, against the same compiled for this processor; one thread each.

The limit: WebAssembly has vectors of 128 bits and no fused multiply-add, so it cannot be faster than code for a CPU
with these (``x86-64-v2``).

taskset -c 1 python benchmarks/wasm.py
"""

from __future__ import annotations

import latency
from measure import interleaved, write

import landbridge as lb

MODELS = ("det 320x320", "cls 48x192", "rec 48x320", "squeezenet", "shufflenet")
#: Name of a column, target, device.
TARGETS = (("wasm", "wasm", "wasm"), ("128 bits", "llvm -mcpu=x86-64-v2", "cpu"), ("this CPU", "llvm", "cpu"))


def main() -> None:
    rows: list[tuple[object, ...]] = []
    cases = latency.cases()
    for model in MODELS:
        title, (source, inputs) = next((name, case) for name, case in cases.items() if model in name)
        shapes = {name: array.shape for name, array in inputs.items()}
        actions = {}
        for column, target, device in TARGETS:
            session = lb.Session(lb.compile(source, target, shapes=shapes), device=device, num_threads=1)
            for name, array in inputs.items():
                session.set_input(name, array)
            actions[column] = session.run
        spent = interleaved(actions, rounds=15, warm=True)
        times = [1e3 * spent[column] for column, _, _ in TARGETS]
        rows.append((title, *times, spent["wasm"] / spent["128 bits"], spent["wasm"] / spent["this CPU"]))
    columns = ("model", "wasm, ms", "128 bits, ms", "this CPU, ms", "wasm / 128 bits", "wasm / this CPU")
    write("wasm", columns, rows)


if __name__ == "__main__":
    main()
