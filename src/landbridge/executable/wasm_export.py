"""Writes an Executable for browsers and Node: a WebAssembly module, its weights, and the JavaScript that runs it."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import numpy as np

from landbridge.errors import ExecutableError
from landbridge.executable.c_export import check_name
from landbridge.executable.executable import Executable
from landbridge.executable.parts import TensorSpec
from landbridge.executable.wasm_binary import imported_functions, placed
from landbridge.executable.wasm_program import WasmProgram, wasm_program
from landbridge.files.output_file import write_together

#: Dtypes whose arrays JavaScript has.
_DTYPES = [
    "bool",
    "uint8",
    "int8",
    "uint16",
    "int16",
    "uint32",
    "int32",
    "uint64",
    "int64",
    "float16",
    "float32",
    "float64",
]


def export_wasm(executable: Executable, folder: str | Path, name: str) -> list[Path]:
    """Writes ``name.wasm``, ``name.weights`` and ``name.mjs`` to ``folder``, which is made if it is missing.

    The memory that the program uses is planned: it never grows. Returns the files. Raises InputError for a name that is
    no identifier of lower-case letters, digits and underscores, ExecutableError for what the kernels alone cannot run
    (``wasm_program``), OutputFileError as ``Executable.save``; then no file is written.
    """
    check_name(name)
    program, image = wasm_program(executable)
    for spec in (*executable.main.inputs, *executable.main.outputs):
        if spec.dtype not in _DTYPES:
            raise ExecutableError(
                f"{spec.name!r} is of {spec.dtype}, of which JavaScript has no arrays; legal: {', '.join(_DTYPES)}"
            )
    if "erf" in imported_functions(image.code):
        raise ExecutableError("kernels call erf of float64, which JavaScript does not have; compute it in float32")
    weights, parts = _weights(executable, program)
    code = placed(image.code, program.data)
    contents = {
        f"{name}.wasm": code,
        f"{name}.weights": weights,
        f"{name}.mjs": _loader(name, executable, program, parts, code, weights).encode(),
    }
    return write_together(folder, contents, executable.sources)  # they fit each other alone


def _weights(executable: Executable, program: WasmProgram) -> tuple[bytes, list[tuple[int, int, int]]]:
    """Returns the content of the file, without gaps, and its parts: where each begins, its address, its bytes."""
    executable.check_files()
    content, parts = bytearray(), []
    for name, address in program.weights.items():
        array = np.ascontiguousarray(executable.constants[name])
        parts.append((len(content), address, array.nbytes))
        content += array.tobytes()
    return bytes(content), parts


def _loader(
    name: str,
    executable: Executable,
    program: WasmProgram,
    parts: list[tuple[int, int, int]],
    code: bytes,
    weights: bytes,
) -> str:
    def described(specs: tuple[TensorSpec, ...], addresses: list[int]) -> list[dict[str, object]]:
        return [
            {"name": spec.name, "dtype": spec.dtype, "shape": list(spec.shape), "address": address}
            for spec, address in zip(specs, addresses, strict=True)
        ]

    main = executable.main
    facts = {
        "pages": program.pages,
        "stackEnd": program.stack_end,
        "arguments": program.arguments,
        "sha256": {"wasm": sha256(code).hexdigest(), "weights": sha256(weights).hexdigest()},
        "weights": parts,
        "kernels": program.kernels,
        "words": program.words,
        "inputs": described(main.inputs, program.inputs),
        "outputs": described(main.outputs, program.outputs),
        "prepared": program.prepared,
        "run": program.run,
    }
    text = files(__package__).joinpath("wasm_loader.mjs").read_text(encoding="utf-8")
    first = [json.dumps(specs[0].name) if specs else '"..."' for specs in (main.inputs, main.outputs)]
    pieces = {
        "LB_FIRST_INPUT": first[0],
        "LB_FIRST_OUTPUT": first[1],
        "LB_PROGRAM": json.dumps(facts, separators=(",", ":")),
        "LB_NAME": name,
    }
    # At once, as names of tensors may be such words.
    return re.sub("|".join(pieces), lambda found: pieces[found[0]], text)
