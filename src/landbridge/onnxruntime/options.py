"""Options of sessions and runs; those that choose among onnxruntime's own ways of running change nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

from landbridge.onnxruntime.capi import onnxruntime_pybind11_state as failures
from landbridge.onnxruntime.ort_value import OrtValue


class GraphOptimizationLevel(IntEnum):
    """What onnxruntime would optimize; Landbridge compiles with all its passes."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(IntEnum):
    """Whether nodes run at the same time; kernels of Landbridge use all threads one after another."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(IntEnum):
    """In which order nodes run."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class _Entries:
    def __init__(self) -> None:
        self._entries: dict[str, str] = {}


class SessionOptions(_Entries):
    """What counts: ``intra_op_num_threads`` (0: all processors), free dimensions and initializers."""

    def __init__(self) -> None:
        super().__init__()
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order = ExecutionOrder.DEFAULT
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.enable_profiling = False
        self.profile_file_prefix = "onnxruntime_profile_"
        self.optimized_model_filepath = ""
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.use_deterministic_compute = False
        self.use_per_session_threads = True
        #: Open dimensions that are fixed, by name and by denotation.
        self.free_dimensions: dict[str, int] = {}
        self.denoted_dimensions: dict[str, int] = {}
        #: Initializers that take the place of the file's, by name.
        self.initializers: dict[str, OrtValue] = {}

    def add_free_dimension_override_by_name(self, name: str, value: int) -> None:
        """Fix the open dimension ``name`` of inputs to ``value``."""
        self.free_dimensions[name] = int(value)

    def add_free_dimension_override_by_denotation(self, denotation: str, value: int) -> None:
        """Fix open dimensions of inputs that the file marks ``denotation``, as ``DATA_BATCH``, to ``value``."""
        self.denoted_dimensions[denotation] = int(value)

    def add_initializer(self, name: str, ort_value: OrtValue) -> None:
        """Take ``ort_value`` in the place of the file's initializer ``name``; read when a session is made."""
        self.initializers[name] = ort_value

    def add_external_initializers(self, names: Sequence[str], ort_values: Sequence[OrtValue]) -> None:
        """As ``add_initializer``, of several."""
        if len(names) != len(ort_values):
            raise failures.InvalidArgument(
                f"{len(names)} names and {len(ort_values)} values: a value for each name is needed"
            )
        self.initializers.update(zip(names, ort_values, strict=True))

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keep an entry. ``session.model_external_initializers_file_folder_path`` is the folder of external data where
        the model is bytes; ``landbridge.allow_links`` as ``"1"`` lets links to it lead anywhere. Others change nothing.
        """
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """The entry that was added; raises KeyError for another."""
        return self._entries[key]

    def config_entry(self, key: str) -> str:
        """The entry that was added, or nothing."""
        return self._entries.get(key, "")

    def add_provider(self, provider_name: str, options: Mapping[str, str]) -> None:
        """Nothing: the CPU runs the model."""

    def has_providers(self) -> bool:
        """False: providers are given to the session."""
        return False

    def register_custom_ops_library(self, library_path: str) -> None:
        """Raise NotImplemented: operators of one's own are functions of numpy here (``landbridge.host_operator``)."""
        raise failures.NotImplemented(
            f"{library_path}: operators in libraries of onnxruntime are not loaded; register each as a "
            "function of numpy by landbridge.host_operator (docs/operators.md)"
        )


class RunOptions(_Entries):
    """Of one run: with ``terminate`` it ends before it begins."""

    def __init__(self) -> None:
        super().__init__()
        self.terminate = False
        self.only_execute_path_to_fetches = False
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Keep an entry, which changes nothing."""
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> Any:
        """The entry that was added; raises KeyError for another."""
        return self._entries[key]
