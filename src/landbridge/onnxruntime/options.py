"""Options of sessions and runs; those for onnxruntime's own implementation have no effect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar

from landbridge.onnxruntime.capi import onnxruntime_pybind11_state as failures
from landbridge.onnxruntime.lora_adapter import LoraAdapter
from landbridge.onnxruntime.option_fields import OptionFields
from landbridge.onnxruntime.ort_value import OrtValue


class GraphOptimizationLevel(IntEnum):
    """onnxruntime's optimization levels; Landbridge compiles with all its passes."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(IntEnum):
    """onnxruntime's execution modes; kernels of Landbridge run one after another, each on all threads."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(IntEnum):
    """onnxruntime's orders of nodes; they have no effect."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class SessionOptions(OptionFields):
    """The options of a session. These have an effect: ``intra_op_num_threads`` (below 1: all processors),
    ``enable_profiling`` with ``profile_file_prefix``, ``optimized_model_filepath``, free dimensions and initializers.

    Raises NoFieldError, an AttributeError, for an unknown field, and FieldTypeError for a value of another type.
    """

    _FIELDS: ClassVar[dict[str, bool | int | str]] = {
        "intra_op_num_threads": 0,
        "inter_op_num_threads": 0,
        "graph_optimization_level": GraphOptimizationLevel.ORT_ENABLE_ALL,
        "execution_mode": ExecutionMode.ORT_SEQUENTIAL,
        "execution_order": ExecutionOrder.DEFAULT,
        "enable_cpu_mem_arena": True,
        "enable_mem_pattern": True,
        "enable_mem_reuse": True,
        "enable_profiling": False,
        "profile_file_prefix": "onnxruntime_profile_",
        "optimized_model_filepath": "",
        "log_severity_level": -1,
        "log_verbosity_level": 0,
        "logid": "",
        "use_deterministic_compute": False,
        "use_per_session_threads": True,
    }

    if TYPE_CHECKING:
        intra_op_num_threads: int
        inter_op_num_threads: int
        graph_optimization_level: GraphOptimizationLevel
        execution_mode: ExecutionMode
        execution_order: ExecutionOrder
        enable_cpu_mem_arena: bool
        enable_mem_pattern: bool
        enable_mem_reuse: bool
        enable_profiling: bool
        profile_file_prefix: str
        optimized_model_filepath: str
        log_severity_level: int
        log_verbosity_level: int
        logid: str
        use_deterministic_compute: bool
        use_per_session_threads: bool

    def __init__(self) -> None:
        super().__init__()
        self._free_dimensions: dict[str, int] = {}
        self._denoted_dimensions: dict[str, int] = {}
        self._initializers: dict[str, OrtValue] = {}

    @property
    def threads(self) -> int | None:
        """Returns the number of threads of a Session; None means all processors, as does a number below 1 in
        onnxruntime.
        """
        return self.intra_op_num_threads if self.intra_op_num_threads > 0 else None

    @property
    def free_dimensions(self) -> Mapping[str, int]:
        """Returns the open dimensions that are fixed, by name."""
        return self._free_dimensions

    @property
    def denoted_dimensions(self) -> Mapping[str, int]:
        """Returns the open dimensions that are fixed, by denotation."""
        return self._denoted_dimensions

    @property
    def initializers(self) -> Mapping[str, OrtValue]:
        """Returns the initializers that replace those of the file, by name."""
        return self._initializers

    def without_initializers(self) -> SessionOptions:
        """Returns these options for a model that has the initializers already."""
        created = copy(self)
        created._initializers = {}
        return created

    def add_free_dimension_override_by_name(self, name: str, value: int) -> None:
        """Fixes the open dimension ``name`` of inputs to ``value``."""
        self._free_dimensions[name] = int(value)

    def add_free_dimension_override_by_denotation(self, denotation: str, value: int) -> None:
        """Fixes open dimensions of inputs with the denotation ``denotation``, such as ``DATA_BATCH``, to ``value``."""
        self._denoted_dimensions[denotation] = int(value)

    def add_initializer(self, name: str, ort_value: OrtValue) -> None:
        """Replaces the file's initializer ``name`` by ``ort_value``, which is read when a session is made."""
        self._initializers[name] = ort_value

    def add_external_initializers(self, names: Sequence[str], ort_values: Sequence[OrtValue]) -> None:
        """Replaces several initializers, as ``add_initializer`` does."""
        if len(names) != len(ort_values):
            raise failures.InvalidArgument(
                f"{len(names)} names and {len(ort_values)} values: a value for each name is needed"
            )
        self._initializers.update(zip(names, ort_values, strict=True))

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Stores an entry. ``session.model_external_initializers_file_folder_path`` is the folder of external data
        where the model is bytes; ``landbridge.allow_links`` as ``"1"`` lets links to it lead anywhere;
        ``landbridge.kept_programs`` is how many programs are retained where each size needs its own;
        ``landbridge.optimize`` as ``"fast"`` lets first programs run until the full one is compiled
        (``landbridge.compile``); with open dimensions one for each choice of sizes. Others have no effect.
        """
        self._add_entry(key, value)

    def get_session_config_entry(self, key: str) -> str:
        """Returns the entry that was added; raises NoEntryError, a RuntimeError, for another."""
        return self._entry(key)

    def add_provider(self, provider_name: str, options: Mapping[str, str]) -> None:
        """Does nothing: the CPU runs the model."""

    def has_providers(self) -> bool:
        """Returns False: providers are an argument of the session."""
        return False

    def register_custom_ops_library(self, library_path: str) -> None:
        """Raises NotImplemented: custom operators are numpy functions in Landbridge (``landbridge.host_operator``)."""
        raise failures.NotImplemented(
            f"{library_path}: operators in libraries of onnxruntime are not loaded; register each as a "
            "function of numpy by landbridge.host_operator (docs/operators.md)"
        )


class RunOptions(OptionFields):
    """The options of one run; with ``terminate`` it ends before it begins. Raises the errors of SessionOptions."""

    _FIELDS: ClassVar[dict[str, bool | int | str]] = {
        "terminate": False,
        "only_execute_path_to_fetches": False,
        "log_severity_level": -1,
        "log_verbosity_level": 0,
        "logid": "",
    }

    if TYPE_CHECKING:
        terminate: bool
        only_execute_path_to_fetches: bool
        log_severity_level: int
        log_verbosity_level: int
        logid: str

    def __init__(self) -> None:
        super().__init__()
        self._adapters: list[LoraAdapter] = []

    @property
    def adapted(self) -> Mapping[str, OrtValue]:
        """Returns the values of weights, by name, of the active adapters."""
        return {name: value for adapter in self._adapters for name, value in adapter.parameters.items()}

    def add_active_adapter(self, adapter: LoraAdapter) -> None:
        """Makes runs with these options use the values of ``adapter``."""
        self._adapters.append(adapter)

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Stores an entry, which has no effect."""
        self._add_entry(key, value)

    def get_run_config_entry(self, key: str) -> str:
        """Returns the entry that was added; raises NoEntryError, a RuntimeError, for another."""
        return self._entry(key)
