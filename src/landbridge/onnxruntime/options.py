"""Options of sessions and runs; those that choose among onnxruntime's own ways of running change nothing."""

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


class SessionOptions(OptionFields):
    """What counts: ``intra_op_num_threads`` (below 1: all processors), ``enable_profiling`` with
    ``profile_file_prefix``, ``optimized_model_filepath``, free dimensions and initializers.

    Raises NoFieldError, an AttributeError, for a field that is none, and FieldTypeError for a value of another type.
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
        """How many threads a Session gets; None is all processors, as for any number below 1 in onnxruntime."""
        return self.intra_op_num_threads if self.intra_op_num_threads > 0 else None

    @property
    def free_dimensions(self) -> Mapping[str, int]:
        """Open dimensions that are fixed, by name."""
        return self._free_dimensions

    @property
    def denoted_dimensions(self) -> Mapping[str, int]:
        """Open dimensions that are fixed, by denotation."""
        return self._denoted_dimensions

    @property
    def initializers(self) -> Mapping[str, OrtValue]:
        """Initializers that take the place of the file's, by name."""
        return self._initializers

    def without_initializers(self) -> SessionOptions:
        """These options for a model that has the initializers already."""
        created = copy(self)
        created._initializers = {}
        return created

    def add_free_dimension_override_by_name(self, name: str, value: int) -> None:
        """Fix the open dimension ``name`` of inputs to ``value``."""
        self._free_dimensions[name] = int(value)

    def add_free_dimension_override_by_denotation(self, denotation: str, value: int) -> None:
        """Fix open dimensions of inputs that the file marks ``denotation``, as ``DATA_BATCH``, to ``value``."""
        self._denoted_dimensions[denotation] = int(value)

    def add_initializer(self, name: str, ort_value: OrtValue) -> None:
        """Take ``ort_value`` in the place of the file's initializer ``name``; read when a session is made."""
        self._initializers[name] = ort_value

    def add_external_initializers(self, names: Sequence[str], ort_values: Sequence[OrtValue]) -> None:
        """As ``add_initializer``, of several."""
        if len(names) != len(ort_values):
            raise failures.InvalidArgument(
                f"{len(names)} names and {len(ort_values)} values: a value for each name is needed"
            )
        self._initializers.update(zip(names, ort_values, strict=True))

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keep an entry. ``session.model_external_initializers_file_folder_path`` is the folder of external data where
        the model is bytes; ``landbridge.allow_links`` as ``"1"`` lets links to it lead anywhere;
        ``landbridge.kept_programs`` is how many programs are kept where sizes need one each. Others change nothing.
        """
        self._add_entry(key, value)

    def get_session_config_entry(self, key: str) -> str:
        """The entry that was added; raises NoEntryError, a RuntimeError, for another."""
        return self._entry(key)

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


class RunOptions(OptionFields):
    """Of one run: with ``terminate`` it ends before it begins. Raises as SessionOptions does."""

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
        """Values of weights, by name, of the adapters that are active."""
        return {name: value for adapter in self._adapters for name, value in adapter.parameters.items()}

    def add_active_adapter(self, adapter: LoraAdapter) -> None:
        """Let runs with these options have the values of ``adapter``."""
        self._adapters.append(adapter)

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Keep an entry, which changes nothing."""
        self._add_entry(key, value)

    def get_run_config_entry(self, key: str) -> str:
        """The entry that was added; raises NoEntryError, a RuntimeError, for another."""
        return self._entry(key)
