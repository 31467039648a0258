"""The target kind ``vulkan``: devices that run SPIR-V compute shaders, with the limits that shape kernels.

Defaults are what a device that shares the host's memory has today; ``Target.from_device("vulkan:0")`` records a
driver's own. Limits are those of VkPhysicalDeviceLimits (Vulkan 1.3 specification, section 43.1, "Limits"); facts that
are not numbers there are features of VkPhysicalDeviceFeatures and its extensions (section 42, "Features").
"""

from __future__ import annotations

from landbridge.memory_kind import GLOBAL_SCOPE, MemoryKind
from landbridge.targets.grid_options import declared, powers_of_two, shared_host_memory, vector_width
from landbridge.targets.images import TEXTURE_SCOPE
from landbridge.targets.kind import Option, Options, TargetKind

#: The scopes of host memory that the device accesses, if "global" is the device's alone: a coherent one, and a cached
#: one without coherence if the driver has such a type.
HOST_SCOPE = "host"
HOST_CACHED_SCOPE = "host.cached"

_POWERS_OF_TWO = ("memory-alignment", "coherence-granule", "import-alignment")


def vulkan_memory(options: Options) -> tuple[MemoryKind, ...]:
    """Returns the memory of a device with ``options``: one scope that both sides use, or one per side, and images.

    Images are included if kernels use them.
    """
    unified = options["unified-memory"] is True
    coherent = options["coherent-memory"] is True
    max_bytes, capacity = declared(options, "max-allocation-bytes"), declared(options, "memory-bytes")
    importable = _integer(options, "import-alignment") > 0

    images = MemoryKind(
        scope=TEXTURE_SCOPE,
        host_access="none",
        coherent=False,
        max_bytes=max_bytes,
        capacity=capacity,
        ndim=3,  # rows, pixels, the lanes of a pixel
        allocators=("naive",),
    )

    def kind(scope: str, shared: bool) -> MemoryKind:
        return MemoryKind(
            scope=scope,
            host_access="read_write" if shared else "none",
            coherent=shared and coherent,
            alignment=_integer(options, "memory-alignment"),
            coherence_granule=1 if shared and coherent else _integer(options, "coherence-granule"),
            max_bytes=max_bytes,
            max_binding_bytes=declared(options, "max-binding-bytes"),
            capacity=capacity if scope == GLOBAL_SCOPE else None,
            importable=shared and importable,
            import_alignment=max(1, _integer(options, "import-alignment")) if shared else 1,
        )

    flat = (kind(GLOBAL_SCOPE, True),) if unified else (kind(GLOBAL_SCOPE, False), kind(HOST_SCOPE, True))
    return (*flat, images) if options["images"] is True else flat


def _integer(options: Options, name: str) -> int:
    return declared(options, name) or 0


VULKAN = TargetKind(
    name="vulkan",
    doc="devices that run SPIR-V compute shaders; without options, a GPU that shares the host's memory",
    options=(
        Option("num-cores", "int", "Units that run workgroups side by side.", default=8, minimum=1),
        Option("max-workgroup-size", "int", "maxComputeWorkGroupInvocations.", default=256, minimum=1),
        Option("max-workgroup-size-x", "int", "maxComputeWorkGroupSize[0].", default=256, minimum=1),
        Option("max-workgroup-size-y", "int", "maxComputeWorkGroupSize[1].", default=256, minimum=1),
        Option("max-workgroup-size-z", "int", "maxComputeWorkGroupSize[2].", default=64, minimum=1),
        Option("max-workgroups", "int", "Least of maxComputeWorkGroupCount.", default=65535, minimum=1),
        Option(
            "max-loop-iterations",
            "int",
            "Iterations of all loops of an invocation after which the driver ends them; no limit when absent.",
            minimum=1024,
        ),
        Option("local-memory-bytes", "int", "maxComputeSharedMemorySize, in bytes.", default=32 << 10),
        Option("dedicated-local-memory", "bool", "Whether shared memory is faster than global memory.", default=True),
        Option(
            "vector-bits",
            "int",
            "Bits of the vector that kernels use; at most 4 floats.",
            default=128,
            minimum=32,
            power_of_two=True,
        ),
        Option("vector-registers", "int", "Vectors that one invocation keeps in registers.", default=16, minimum=4),
        Option("subgroup-size", "int", "Invocations of a subgroup; 0 where there are none.", default=0),
        Option("max-storage-buffers", "int", "maxPerStageDescriptorStorageBuffers.", default=16, minimum=4),
        Option("push-constant-bytes", "int", "maxPushConstantsSize.", default=128, minimum=128),
        Option("fp16", "bool", "shaderFloat16: arithmetic in half.", default=False),
        Option("fp64", "bool", "shaderFloat64: arithmetic in double.", default=False),
        Option("fp64-math", "bool", "Functions of f64 beside roots, exp, log and pow.", default=False),
        Option("preserve-nan", "bool", "shaderSignedZeroInfNanPreserveFloat32, and of f64 with fp64.", default=False),
        Option(
            "rounded-quotients",
            "bool",
            "Whether OpFDiv of f32 gives the nearest float; if not, fused multiply-adds put it right.",
            default=True,
        ),
        Option("int64", "bool", "shaderInt64: arithmetic in 64 bits.", default=False),
        Option("small-elements", "bool", "Storage and integers of 8 and 16 bits.", default=False),
        Option("images", "bool", "Images, the scope global.texture: shaderStorageImageExtendedFormats.", default=False),
        Option("image-width", "int", "maxImageDimension2D.", default=4096, minimum=1),
        Option("image-height", "int", "maxImageDimension2D.", default=4096, minimum=1),
        Option("max-sampled-images", "int", "maxPerStageDescriptorSampledImages.", default=16, minimum=0),
        Option("max-storage-images", "int", "maxPerStageDescriptorStorageImages.", default=4, minimum=0),
        Option("unified-memory", "bool", "Whether device and host use the same memory.", default=True),
        Option("coherent-memory", "bool", "Whether shared memory needs no barriers.", default=True),
        Option("memory-alignment", "int", "Of allocations, in bytes.", default=64, minimum=1),
        Option("coherence-granule", "int", "nonCoherentAtomSize, in bytes.", default=64, minimum=1),
        Option(
            "import-alignment",
            "int",
            "minImportedHostPointerAlignment, in bytes; 0 where host memory is not imported.",
            default=4096,
        ),
        Option("max-allocation-bytes", "int", "maxMemoryAllocationSize; no known limit when absent.", minimum=1),
        Option("max-binding-bytes", "int", "maxStorageBufferRange.", default=128 << 20, minimum=1),
        Option("memory-bytes", "int", "Memory of the device; not known when absent.", minimum=1),
    ),
    device_types=("vulkan",),
    keys=("gpu",),
    default_for=("vulkan",),
    form="grid",
    parser=powers_of_two("vulkan", _POWERS_OF_TWO),
    derive=vector_width,
    memory=vulkan_memory,
    shares=shared_host_memory,
)
