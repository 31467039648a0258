"""Which kernels of the compared models a change of lowering changes, and how many instructions each had and has.

python benchmarks/kernel_changes.py BEFORE [--only OCR] [--targets "llvm -mcpu=znver4;raspberry-pi-4"]

BEFORE is the folder of another checkout. The models of ``peers.py`` are compiled up to their PrimFuncs, once for each
target, and the PrimFuncs are stored in the folder of fetched models. Both checkouts lower them. A kernel with the same
lowered IR has the same machine code. Of the others the machine code is made and its instructions are counted: those of
its text, so that loops are not weighed by their iterations.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TARGETS = (
    "llvm -mtriple=x86_64-linux-gnu -mcpu=znver4",
    "llvm -mtriple=x86_64-linux-gnu -mcpu=haswell",
    "raspberry-pi-4",
    "pynq-z2",
)


#: Attributes of lowered kernels that describe them and change no code.
_DESCRIPTIONS = ("lb.schedule", "lb.weighed", "lb.loop_nest")


class _Collected(Exception):
    """Ends a compile whose PrimFuncs are known."""


def collect(folder: Path, only: str, targets: list[str]) -> None:
    """Write the different PrimFuncs of all models for each target, unless they are there."""
    sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT), str(ROOT / "examples" / "ocr")]
    from peers import MODELS
    from xdsl.dialects.builtin import ModuleOp

    import landbridge as lb
    from landbridge.compiler import compilation
    from landbridge.ir.module import IRModule

    found: dict[str, IRModule] = {}

    def keep(module: IRModule, *_: object) -> None:
        found["module"] = module
        raise _Collected

    compilation.lower_kernels = keep  # type: ignore[assignment]
    for number, target in enumerate(targets):
        for name, model in MODELS.items():
            file = folder / f"{_short(target)} {name.replace('/', '-')}.mlir"
            if only not in name or file.exists():
                continue
            try:
                lb.compile(model.path(), target, shapes=model.shapes)
            except _Collected:
                module = found["module"]
            different: dict[str, Any] = {}
            for prim in module.prims().values():
                text = str(prim)
                different.setdefault(hashlib.sha256(text.replace(prim.sym_name.data, "").encode()).hexdigest(), prim)
            kept = IRModule(ModuleOp([prim.clone() for prim in different.values()]), module.targets)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps([target, kept.print()]))
            print(f"{number + 1}/{len(targets)} {name}: {len(different)} different kernels", flush=True)


def lowered(
    folder: Path, only: str, targets: list[str], wanted: Container[str] | None = None
) -> Iterator[tuple[str, Any, Any]]:
    """Yields each different kernel of a target: model and name, the Target, and its lowered form or the error.

    ``wanted``: the kernels to lower, by model and name; None for all.
    """
    from landbridge.ir.module import IRModule
    from landbridge.passes.lower import lowering_for
    from landbridge.targets import Target

    seen = set()
    for file in _files(folder, only, targets):
        target, text = json.loads(file.read_text())
        resolved = Target(target)
        module, lower = IRModule.parse(text, (resolved,)), lowering_for(resolved)
        for name, prim in module.prims().items():
            key, title = (target, str(prim).replace(f"@{name}", "@", 1)), f"{file.stem}: {name}"
            if key in seen or (wanted is not None and title not in wanted):
                continue
            seen.add(key)
            try:
                function = lower(prim)
            except Exception as error:
                yield title, resolved, error
                continue
            for attribute in _DESCRIPTIONS:
                function.attributes.pop(attribute, None)
            yield title, resolved, function


def _digest(function: Any) -> str:
    """Returns a digest of a lowered kernel; of an error, its text."""
    if isinstance(function, Exception):
        return f"{type(function).__name__}: {function}"
    return hashlib.sha256(str(function).encode()).hexdigest()


def instruction_count(target: Any, function: Any) -> int:
    """Returns how many instructions LLVM makes of a lowered kernel; only LLVM's own targets have them."""
    from xdsl.dialects.builtin import ModuleOp

    from landbridge.codegen.llvm import compile as llvm
    from landbridge.codegen.llvm.image import BegunImage, machine_of
    from landbridge.codegen.llvm.print_ir import print_functions

    ModuleOp([function])
    machine = machine_of(target)
    begun = BegunImage(target)
    begun.close()
    printed = print_functions([function], begun._isa)
    lines = llvm._target_machine(machine).emit_assembly(llvm.optimized(printed, machine, vectorize=False)).splitlines()
    return sum(line.startswith("\t") and line[1:2].isalpha() for line in lines)


def _short(target: str) -> str:
    return target.rpartition("=")[2] or target


def _files(folder: Path, only: str, targets: list[str]) -> list[Path]:
    names = {_short(target) for target in targets}
    return sorted(f for f in folder.glob("*.mlir") if only in f.stem and any(f.stem.startswith(n + " ") for n in names))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path)
    parser.add_argument("--only", default="", help="a part of the names of the models")
    parser.add_argument("--targets", default=";".join(TARGETS), help="separated by semicolons")
    parser.add_argument("--folder", type=Path, help="where PrimFuncs are kept")
    parser.add_argument("--child", choices=("lower", "count"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    targets = [target.strip() for target in options.targets.split(";")]
    if options.child:
        wanted = None if options.child == "lower" else set(json.load(sys.stdin))
        kernels = lowered(options.folder, options.only, targets, wanted)
        if options.child == "lower":
            json.dump({name: _digest(function) for name, _, function in kernels}, sys.stdout)
        else:
            json.dump({name: instruction_count(target, each) for name, target, each in kernels}, sys.stdout)
        return
    folder = options.folder or _default_folder()
    collect(folder, options.only, targets)
    arguments = ["--folder", str(folder), "--only", options.only, "--targets", options.targets]
    before, after = (_lowered_by(checkout, folder, arguments) for checkout in (options.before, ROOT))
    changed = [name for name in before if before[name] != after.get(name)]
    print(f"{len(before)} kernels, {len(changed)} with other IR")
    failed = [name for name in changed if " " in before[name] or " " in after.get(name, "not lowered")]
    for name in failed:
        print(f"  {name}: {after.get(name, 'not lowered')}")
    compared = json.dumps([name for name in changed if name not in failed])
    had, has = (
        dict(json.loads(_run(checkout, [*arguments, "--child", "count"], compared)))
        for checkout in (options.before, ROOT)
    )
    for target in map(_short, targets):
        names = [name for name in had if name.startswith(target + " ")]
        more = sorted((name for name in names if has[name] > had[name]), key=lambda name: -has[name] / had[name])
        fewer = sum(has[name] < had[name] for name in names)
        print(
            f"{target}: {len(names)} changed, {len(more)} have more instructions, {fewer} fewer; "
            f"{sum(had[name] for name in names)} before, {sum(has[name] for name in names)} now"
        )
        for name in more:
            print(f"  {name}: {had[name]} instructions, now {has[name]} ({has[name] / had[name]:.3f})")


def _lowered_by(checkout: Path, folder: Path, arguments: list[str]) -> dict[str, str]:
    """Returns what a checkout lowers the kernels to; that of a commit without changes is kept."""
    git = ["git", "-C", str(checkout)]
    changed = subprocess.run([*git, "status", "--porcelain", "src"], capture_output=True, text=True, check=True).stdout
    tree = subprocess.run([*git, "rev-parse", "HEAD:src"], capture_output=True, text=True, check=True).stdout.strip()
    asked = hashlib.sha256(repr((tree, arguments)).encode()).hexdigest()[:16]
    kept = folder / f"lowered-{asked}.json"
    if not changed and kept.exists():
        return dict(json.loads(kept.read_text()))
    text = _run(checkout, [*arguments, "--child", "lower"])
    if not changed:
        kept.write_text(text)
    return dict(json.loads(text))


def _run(checkout: Path, arguments: list[str], given: str = "") -> str:
    """Returns what this script prints if it runs with the package of ``checkout``."""
    command = [sys.executable, str(Path(__file__)), str(checkout), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(checkout.resolve() / "src")}
    done = subprocess.run(command, input=given, capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def _default_folder() -> Path:
    sys.path[:0] = [str(ROOT / "examples" / "ocr")]
    from wheel_models import cache_folder

    return cache_folder() / "kernels"


if __name__ == "__main__":
    main()
