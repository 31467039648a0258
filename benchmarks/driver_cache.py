"""What a driver's compiler takes of a new process, with and without what it compiled in an earlier one.

python benchmarks/driver_cache.py [--network squeezenet]... [--rounds 5] [--icd FOLDER]... [--write]

Processor time of processes that open the device, load a compiled ``.lbx``, run it once and end; those of the compilers
that the driver starts are included. A driver's own files are turned off, but in the rows that say so. ``--icd`` names
folders of ``.icd`` files, each for one OpenCL driver (OCL_ICD_VENDORS); without, it is the system's. RADV compiles
without a GPU of AMD for one that is named to it, and runs nothing: pipelines are created, nothing is launched.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from measure import write

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples" / "ocr")]
logging.disable(logging.CRITICAL)  # onnxruntime looks for GPUs

from peers import MODELS  # noqa: E402

#: Steps of a process, each of which ends with ``step()``.
_CLOCK = """
import json, os, sys
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
def now():
    return sum(spent.ru_utime + spent.ru_stime for spent in map(getrusage, (RUSAGE_SELF, RUSAGE_CHILDREN)))
import numpy as np
import landbridge as lb
spent, before = [], now()
def step():
    global before
    spent.append(now() - before)
    before = now()
def report(driver):
    print(json.dumps({"driver": driver, "spent": spent, "until": now()}), flush=True)
"""
_COMPILE = """
import sys
sys.path[:0] = {path!r}
from peers import MODELS
model = MODELS[{name!r}]
lb.compile(str(model.path()), lb.Target.from_device(lb.device("{device}:0")), shapes=model.shapes).save({file!r})
"""
_RUN = """
from landbridge.device.attr import DeviceAttr
device = lb.device("{device}:0")
device.memory_kind()
step()
session = lb.Session(lb.load({file!r}), device=device)
step()
for name, shape in {shapes!r}.items():
    session.set_input(name, np.full(shape, 0.5, np.float32))
session.run()
np.asarray(session.get_output(0).to_device("cpu"))
step()
report(device.attr(DeviceAttr.DRIVER_VERSION))
"""
_PIPELINES = """
from landbridge.devices.vulkan import calls, logical_device
from landbridge.devices.vulkan.driver_objects import DriverObjects
from landbridge.devices.vulkan.instance import VulkanInstance
from landbridge.devices.vulkan.modules import VulkanModule
instance = VulkanInstance()
found = next(device for device in instance.devices if "RADV" in device.name)
features = logical_device._FEATURES & found.features
handle = logical_device._open(instance, found, features, ())
device = DriverObjects("vulkan:0", found, handle, calls.of_device(instance.calls, handle))
device.features = features
step()
images = [module.image for module in lb.load({file!r}).modules if hasattr(module.image, "format")]
modules = [VulkanModule(device, image.code) for image in images]
step()
for module in modules:
    for name in module.facts.entry_points:
        module.kernel(name)
step()
for module in modules:
    module.cache.write()
report(found.driver + ", pipelines alone")
os._exit(0)  # the driver fails when such a device ends
"""
#: What turns off the files of drivers themselves, and what gives them a folder.
_NO_OWN = {"POCL_KERNEL_CACHE": "0", "MESA_SHADER_CACHE_DISABLE": "true", "CL_CACHE_DISABLE": "1"}
COLUMNS = (
    "model",
    "driver",
    "process",
    "device ms",
    "load ms",
    "first run ms",
    "end ms",
    "load and run ms",
    "file bytes",
)


def started(code: str, variables: Mapping[str, str]) -> tuple[str, list[float]]:
    """The driver's name, and processor milliseconds of each step of one process and of its end."""
    retained = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    child = subprocess.Popen(
        [sys.executable, "-c", _CLOCK + code], stdout=subprocess.PIPE, text=True, env={**retained, **variables}
    )
    assert child.stdout is not None
    printed = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, code
    found = json.loads(printed.splitlines()[-1])
    steps = [*found["spent"], usage.ru_utime + usage.ru_stime - found["until"]]
    return found["driver"], [1e3 * seconds for seconds in steps]


def rows(name: str, device: str, code: str, variables: Mapping[str, str], rounds: int) -> list[list[object]]:
    """The rows of one network on one driver."""
    found: list[list[object]] = []
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/program.lbx"
        path = [str(Path(__file__).resolve().parent), *sys.path[:3]]
        compiled = _CLOCK + _COMPILE.format(path=path, name=name, device=device, file=file)
        subprocess.run([sys.executable, "-c", compiled], check=True, env={**os.environ, "LANDBRIDGE_CACHE": "0"})
        code = code.format(device=device, file=file, shapes=MODELS[name].shapes)
        ours = {**variables, **_NO_OWN, "LANDBRIDGE_CACHE": f"{folder}/ours"}
        own = {
            **variables,
            "LANDBRIDGE_CACHE": "0",
            "POCL_CACHE_DIR": f"{folder}/pocl",
            "MESA_SHADER_CACHE_DIR": f"{folder}/mesa",
        }

        def add(process: str, driver: str, steps: list[float]) -> None:
            kept = (
                sum(file.stat().st_size for file in Path(folder, "ours").glob("*.driver")) if "ours" in process else ""
            )
            found.append([name, driver, process, *steps, sum(steps[1:3]), kept])
            print(*found[-1], flush=True)

        def later(variables: Mapping[str, str]) -> tuple[str, list[float]]:
            many = [started(code, variables) for _ in range(rounds)]
            return many[0][0], [statistics.median(step) for step in zip(*(steps for _, steps in many), strict=True)]

        add("first, ours", *started(code, ours))
        add("later, ours", *later(ours))
        if "RADV_FORCE_FAMILY" not in variables and "OCL_ICD_VENDORS" not in variables:
            started(code, own)
            add("later, the driver's own files", *later(own))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", action="append", choices=MODELS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--icd", action="append", default=[])
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    found: list[list[object]] = []
    for name in options.network or ["squeezenet"]:
        found += rows(name, "opencl", _RUN, {}, options.rounds)
        for icd in options.icd:
            found += rows(name, "opencl", _RUN, {"OCL_ICD_VENDORS": icd}, options.rounds)
        found += rows(name, "vulkan", _RUN, {}, options.rounds)
        found += rows(name, "vulkan", _PIPELINES, {"RADV_FORCE_FAMILY": "navi10"}, options.rounds)
    if options.write:
        write("driver_cache", COLUMNS, found)


if __name__ == "__main__":
    main()
