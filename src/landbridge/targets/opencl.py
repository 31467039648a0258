"""The target kind ``opencl``: devices that run OpenCL C kernels, with the limits that shape kernels.

Defaults are what every OpenCL 1.2 GPU of the last years has; ``Target.from_device("opencl:0")`` records a driver's own.
Limits are those of clGetDeviceInfo (OpenCL 3.0 specification, table 5).
"""

from __future__ import annotations

from landbridge.memory_kind import GLOBAL_SCOPE, MemoryKind
from landbridge.targets.grid_options import declared, powers_of_two, shared_host_memory, vector_width
from landbridge.targets.images import TEXTURE_SCOPE
from landbridge.targets.kind import Option, Options, TargetKind

#: The scope of shared virtual memory; "global" is plain buffers.
SVM_SCOPE = "global.svm"

_POWERS_OF_TWO = ("import-alignment", "memory-alignment", "coherence-granule")


def opencl_memory(options: Options) -> tuple[MemoryKind, ...]:
    """Returns the memory of a device with ``options``: buffers, and shared pointers and images if it has them.

    The host accesses shared buffers through a mapping, which is the barrier: they are not coherent. SVM is coherent
    when it is fine-grained (OpenCL 3.0 specification, section 3.3.3).
    """
    unified = options["unified-memory"] is True
    max_bytes, capacity = declared(options, "max-allocation-bytes"), declared(options, "memory-bytes")
    alignment, granule = _integer(options, "memory-alignment"), _integer(options, "coherence-granule")
    kinds = [
        MemoryKind(
            scope=GLOBAL_SCOPE,
            host_access="read_write" if unified else "none",
            coherent=False,
            alignment=alignment,
            offset_alignment=alignment,
            coherence_granule=granule,
            max_bytes=max_bytes,
            max_binding_bytes=max_bytes,
            capacity=capacity,
            importable=unified and options["import-alignment"] != 0,
            import_alignment=_integer(options, "import-alignment"),
        )
    ]
    svm = options["svm"]
    if svm != "none":
        fine = svm != "coarse"
        kinds.append(
            MemoryKind(
                scope=SVM_SCOPE,
                host_access="read_write",
                coherent=fine,
                alignment=alignment,
                coherence_granule=1 if fine else granule,
                max_bytes=max_bytes,
                max_binding_bytes=max_bytes,
                capacity=capacity,
                importable=svm == "system",
                import_alignment=_integer(options, "import-alignment"),
            )
        )
    if options["images"] is True:
        kinds.append(
            MemoryKind(
                scope=TEXTURE_SCOPE,
                host_access="none",
                coherent=False,
                coherence_granule=granule,
                max_bytes=max_bytes,
                capacity=capacity,
                ndim=3,  # rows, pixels, the lanes of a pixel
                allocators=("naive",),
            )
        )
    return tuple(kinds)


def _integer(options: Options, name: str) -> int:
    return declared(options, name) or 1


OPENCL = TargetKind(
    name="opencl",
    doc="devices that OpenCL C kernels run on; without options, a GPU that shares the host's memory",
    options=(
        Option("device-class", "str", "What the device is.", default="gpu", choices=("gpu", "cpu", "accelerator")),
        Option("opencl-c", "int", "Version of OpenCL C, 120 is 1.2.", default=120, minimum=100),
        Option("num-cores", "int", "Compute units, which run workgroups side by side.", default=8, minimum=1),
        Option("max-workgroup-size", "int", "Work-items of one workgroup.", default=256, minimum=1),
        Option("local-memory-bytes", "int", "Local memory of one workgroup, in bytes.", default=32 << 10),
        Option("dedicated-local-memory", "bool", "Whether local memory is faster than global memory.", default=True),
        Option(
            "vector-bits",
            "int",
            "Bits of the float vector the driver prefers.",
            default=128,
            minimum=32,
            power_of_two=True,
        ),
        Option("vector-registers", "int", "Vectors that one work-item keeps in registers.", default=16, minimum=4),
        Option("subgroup-size", "int", "Work-items of a subgroup; 0 where there are none.", default=0),
        Option("fp16", "bool", "cl_khr_fp16: arithmetic in half.", default=False),
        Option("fp64", "bool", "cl_khr_fp64: arithmetic in double.", default=False),
        Option("images", "bool", "Images, the scope global.texture.", default=False),
        Option("image-width", "int", "Widest 2-D image, in pixels.", default=8192, minimum=1),
        Option("image-height", "int", "Highest 2-D image, in pixels.", default=8192, minimum=1),
        Option("image-formats", "list", "Pixels that images have, as float32x4; all that kernels use when absent."),
        Option("svm", "str", "Shared virtual memory.", default="none", choices=("none", "coarse", "fine", "system")),
        Option("unified-memory", "bool", "Whether device and host use the same memory.", default=True),
        Option(
            "import-alignment",
            "int",
            "Of host memory that is used in place, in bytes; 0 where none is.",
            default=4096,
        ),
        Option("memory-alignment", "int", "Of allocations and of offsets in them, in bytes.", default=128, minimum=1),
        Option(
            "coherence-granule", "int", "Bytes that mappings are rounded to: a device says 1.", default=64, minimum=1
        ),
        Option("max-allocation-bytes", "int", "Largest allocation; no known limit when absent.", minimum=1),
        Option("memory-bytes", "int", "Memory of the device; not known when absent.", minimum=1),
    ),
    device_types=("opencl",),
    keys=("gpu",),
    default_for=("opencl",),
    form="grid",
    parser=powers_of_two("opencl", _POWERS_OF_TWO),
    derive=vector_width,
    memory=opencl_memory,
    shares=shared_host_memory,
)
