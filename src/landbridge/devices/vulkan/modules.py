"""VulkanModule: loaded SPIR-V, and its kernels as compute pipelines."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Mapping
from typing import Any

from landbridge.devices.vulkan import flags, structs_work
from landbridge.devices.vulkan.descriptor_writes import DescriptorWrites, descriptor_types
from landbridge.devices.vulkan.logical_device import LogicalDevice
from landbridge.devices.vulkan.physical_device import PRESERVED, version_text
from landbridge.devices.vulkan.pipeline_cache import PipelineCache
from landbridge.devices.vulkan.result import SUCCESS, check, result_name
from landbridge.devices.vulkan.spirv_facts import EntryPoint, ModuleFacts, facts_of
from landbridge.devices.vulkan.structure import array, handles
from landbridge.errors import DeviceError, KernelBuildError
from landbridge.executable.spirv import Capability, disassemble, words_of
from landbridge.process.locks import new_lock

_FEATURE_OF = {
    Capability.Shader: None,
    Capability.Float16: "shaderFloat16",
    Capability.Float64: "shaderFloat64",
    Capability.Int8: "shaderInt8",
    Capability.Int16: "shaderInt16",
    Capability.Int64: "shaderInt64",
    Capability.StorageBuffer8BitAccess: "storageBuffer8BitAccess",
    Capability.StorageBuffer16BitAccess: "storageBuffer16BitAccess",
    Capability.StorageImageExtendedFormats: "shaderStorageImageExtendedFormats",
    Capability.SignedZeroInfNanPreserve: PRESERVED[32],
}
#: These are in the core of the required versions, so that no device extension must be enabled.
_CORE_EXTENSIONS = frozenset(
    {
        "SPV_KHR_8bit_storage",
        "SPV_KHR_16bit_storage",
        "SPV_KHR_storage_buffer_storage_class",
        "SPV_KHR_float_controls",
        "SPV_KHR_non_semantic_info",
    }
)
#: The newest SPIR-V of each Vulkan version (Vulkan 1.3 specification, appendix A).
_NEWEST_SPIRV = {flags.API_1_2: 0x00010500, 1 << 22 | 3 << 12: 0x00010600}
_SETS_A_POOL = 64


class VulkanModule:
    """SPIR-V loaded on ``device``; each pipeline is made when it is first launched."""

    def __init__(self, device: LogicalDevice, binary: bytes) -> None:
        """Load ``binary``; raises KernelBuildError, with the module's text, for what this device cannot run."""
        self.device = device
        try:
            self._words = words_of(binary)
            self.facts: ModuleFacts = facts_of(self._words)
        except ValueError as error:
            raise KernelBuildError(f"{device.name} cannot load this module: {error}") from error
        self._check_needs()
        code = array(ctypes.c_uint32, self._words)
        request = structs_work.VkShaderModuleCreateInfo(codeSize=4 * len(self._words), pCode=code)
        try:
            self.handle = device.create("ShaderModule", request)
        except DeviceError as error:
            raise self.refusal(str(error)) from error
        self.cache = PipelineCache(device, binary)
        self._kernels: dict[str, Pipeline] = {}
        self._lock = new_lock()

    def kernel(self, name: str) -> Pipeline:
        """Returns the kernel called ``name``; raises DeviceError that names the existing ones."""
        found = self._kernels.get(name)
        if found is None:
            entry = self.facts.entry_points.get(name)
            if entry is None:
                known = ", ".join(sorted(self.facts.entry_points))
                raise DeviceError(f"the SPIR-V module has no kernel {name!r}; it has: {known}")
            with self._lock:
                found = self._kernels.get(name)
                if found is None:
                    found = self._kernels[name] = Pipeline(self, entry)
        return found

    def refusal(self, why: str) -> KernelBuildError:
        """Returns the error for a module that the driver refuses."""
        return KernelBuildError(
            f"{self.device.name} ({self.device.physical.name}, {self.device.physical.driver}) does not take this "
            f"module: {why}; spirv-val says whether it is legal\n--- the module ---\n{disassemble(self._words)}"
        )

    def _check_needs(self) -> None:
        name, physical = self.device.name, self.device.physical
        newest = max((spirv for vulkan, spirv in _NEWEST_SPIRV.items() if physical.version >= vulkan), default=0)
        if self.facts.version > newest:
            raise KernelBuildError(
                f"{name} cannot load this module: it is SPIR-V {version_text_of_spirv(self.facts.version)}, and with "
                f"Vulkan {version_text(physical.version)} the newest is {version_text_of_spirv(newest)}"
            )
        known = {c.value: feature for c, feature in _FEATURE_OF.items()}
        for capability in sorted(self.facts.capabilities):
            feature = known.get(capability, "")
            if feature is not None and feature not in self.device.features:
                needed = Capability(capability).name if capability in known else f"capability {capability}"
                raise KernelBuildError(
                    f"{name} ({physical.name}) cannot load this module: it needs {needed}"
                    f"{f', and the device has no {feature}' if feature else ', which Landbridge does not switch on'}; "
                    f"compile for Target.from_device('{name}'), which states what the device has"
                )
        unknown = sorted(self.facts.extensions - _CORE_EXTENSIONS)
        if unknown:
            raise KernelBuildError(f"{name} cannot load this module: it needs {', '.join(unknown)}")

    def __del__(self) -> None:
        if hasattr(self, "handle"):
            self.device.retire("ShaderModule", self.handle)
        if hasattr(self, "cache"):
            self.device.defer(self.cache.end)


def version_text_of_spirv(version: int) -> str:
    """Returns the text of a SPIR-V version word, such as ``1.5``."""
    return f"{version >> 16 & 0xFF}.{version >> 8 & 0xFF}"


class Pipeline:
    """One entry point as a pipeline, with descriptor sets that are reused."""

    def __init__(self, module: VulkanModule, entry: EntryPoint) -> None:
        device = self.device = module.device
        self.entry = entry
        limits = device.physical.limits
        self._check_limits(limits)
        self.set_layout = device.create("DescriptorSetLayout", _set_layout(descriptor_types(entry)))
        ranges = [structs_work.VkPushConstantRange(flags.SHADER_STAGE_COMPUTE, 0, entry.push_bytes)]
        ranges = ranges if entry.push else []
        self.layout = device.create(
            "PipelineLayout",
            structs_work.VkPipelineLayoutCreateInfo(
                setLayoutCount=1,
                pSetLayouts=handles(self.set_layout),
                pushConstantRangeCount=len(ranges),
                pPushConstantRanges=array(structs_work.VkPushConstantRange, ranges),
            ),
        )
        self.pipeline = self._make_pipeline(module)
        self.writes = DescriptorWrites(device, entry)
        self._pools: list[int] = []
        self._spare: list[int] = []
        self._lock = new_lock()

    def take_set(self) -> int:
        """Returns a descriptor set of this kernel that nothing uses."""
        with self._lock:
            if not self._spare:
                self._grow()
            return self._spare.pop()

    def give_set(self, descriptors: int) -> None:
        """Take ``descriptors`` back, which no batch uses any more; 0 is no set."""
        if descriptors:
            with self._lock:
                self._spare.append(descriptors)

    def _grow(self) -> None:
        device, types = self.device, Counter(descriptor_types(self.entry).values())
        sizes = [structs_work.VkDescriptorPoolSize(kind, count * _SETS_A_POOL) for kind, count in types.items()]
        pool = device.create(
            "DescriptorPool",
            structs_work.VkDescriptorPoolCreateInfo(
                maxSets=_SETS_A_POOL,
                poolSizeCount=len(sizes),
                pPoolSizes=array(structs_work.VkDescriptorPoolSize, sizes),
            ),
        )
        self._pools.append(pool)
        request = structs_work.VkDescriptorSetAllocateInfo(
            descriptorPool=pool,
            descriptorSetCount=_SETS_A_POOL,
            pSetLayouts=handles(*[self.set_layout] * _SETS_A_POOL),
        )
        sets = (ctypes.c_uint64 * _SETS_A_POOL)()
        result = device.calls.vkAllocateDescriptorSets(device.handle, ctypes.byref(request), sets)
        check(result, f"{device.name}: descriptor sets of {self.entry.name!r}")
        self._spare += list(sets)

    def _make_pipeline(self, module: VulkanModule) -> int:
        device = self.device
        stage = structs_work.VkPipelineShaderStageCreateInfo(
            stage=flags.SHADER_STAGE_COMPUTE, module=module.handle, pName=self.entry.name.encode()
        )
        request = structs_work.VkComputePipelineCreateInfo(stage=stage, layout=self.layout, basePipelineIndex=-1)
        created = ctypes.c_uint64()
        result = device.calls.vkCreateComputePipelines(
            device.handle, module.cache.handle, 1, ctypes.byref(request), None, ctypes.byref(created)
        )
        if result != SUCCESS or not created.value:
            raise module.refusal(f"kernel {self.entry.name!r}: {result_name(result)}")
        device.owned("Pipeline", created.value)
        module.cache.note_pipeline()
        return created.value

    def _check_limits(self, limits: Any) -> None:
        x, y, z = self.entry.local_size
        types = Counter(descriptor_types(self.entry).values())
        found: dict[str, tuple[int, int]] = {
            "invocations of a workgroup": (x * y * z, limits.maxComputeWorkGroupInvocations),
            "storage buffers": (types[flags.DESCRIPTOR_STORAGE_BUFFER], limits.maxPerStageDescriptorStorageBuffers),
            "storage images": (types[flags.DESCRIPTOR_STORAGE_IMAGE], limits.maxPerStageDescriptorStorageImages),
            "sampled images": (types[flags.DESCRIPTOR_SAMPLED_IMAGE], limits.maxPerStageDescriptorSampledImages),
            "bytes of push constants": (self.entry.push_bytes, limits.maxPushConstantsSize),
        }
        for axis, size, most in zip("xyz", self.entry.local_size, limits.maxComputeWorkGroupSize, strict=True):
            found[f"invocations of a workgroup along {axis}"] = (size, most)
        for subject, (requested, legal) in found.items():
            if requested > legal:
                raise KernelBuildError(
                    f"{self.device.name}: kernel {self.entry.name!r} has {requested} {subject}; the device allows "
                    f"{legal}: "
                    f"compile for Target.from_device('{self.device.name}')"
                )

    def __del__(self) -> None:
        for kind, handle in (
            *(("DescriptorPool", pool) for pool in getattr(self, "_pools", ())),
            ("Pipeline", getattr(self, "pipeline", 0)),
            ("PipelineLayout", getattr(self, "layout", 0)),
            ("DescriptorSetLayout", getattr(self, "set_layout", 0)),
        ):
            if handle:
                self.device.retire(kind, handle)


def _set_layout(types: Mapping[int, int]) -> structs_work.VkDescriptorSetLayoutCreateInfo:
    entries = [
        structs_work.VkDescriptorSetLayoutBinding(binding, kind, 1, flags.SHADER_STAGE_COMPUTE, None)
        for binding, kind in types.items()
    ]
    return structs_work.VkDescriptorSetLayoutCreateInfo(
        bindingCount=len(entries), pBindings=array(structs_work.VkDescriptorSetLayoutBinding, entries)
    )
