"""InferenceSession: the class of onnxruntime, implemented with Landbridge's Session."""

from __future__ import annotations

import os
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from landbridge.array_type import Array
from landbridge.errors import InputError, LandbridgeError, ShapeError
from landbridge.executable.executable import Executable
from landbridge.onnxruntime import model_file
from landbridge.onnxruntime.capi import onnxruntime_pybind11_state as failures
from landbridge.onnxruntime.feeds import taken
from landbridge.onnxruntime.io_binding import IOBinding
from landbridge.onnxruntime.lru_cache import Retained
from landbridge.onnxruntime.memory_info import OrtMemoryInfo
from landbridge.onnxruntime.model_facts import ModelMetadata, NodeArg, typed
from landbridge.onnxruntime.model_source import read_source
from landbridge.onnxruntime.options import RunOptions, SessionOptions
from landbridge.onnxruntime.ort_value import OrtValue
from landbridge.onnxruntime.ort_value_vector import OrtValueVector
from landbridge.onnxruntime.process import CPU, get_available_providers
from landbridge.onnxruntime.profile import Profile
from landbridge.onnxruntime.programs import Programs, as_onnxruntime, retained_programs

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


class InferenceSession:
    """A model, compiled and ready to run; any number of threads may call ``run``.

    ``path_or_bytes`` is the path of an ONNX file or its bytes. Unavailable providers cause a warning, and the CPU runs
    the model. Raises onnxruntime's exceptions (``capi.onnxruntime_pybind11_state``), whose messages say what to do.
    """

    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike[str],
        sess_options: SessionOptions | None = None,
        providers: Sequence[str | tuple[str, Mapping[Any, Any]]] | None = None,
        provider_options: Sequence[Mapping[Any, Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        if not isinstance(path_or_bytes, str | bytes | os.PathLike):
            raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")
        #: A private attribute of onnxruntime's class, by which optimum and onnxruntime's own tools find files.
        self._model_path = None if isinstance(path_or_bytes, bytes) else os.fspath(path_or_bytes)
        self._options = sess_options or SessionOptions()
        self.set_providers(providers, provider_options)
        self._profile = Profile(self._options.profile_file_prefix) if self._options.enable_profiling else None
        with self._span("model_loading"), as_onnxruntime():
            self._source = read_source(path_or_bytes, self._options)
        self._inputs, self._overridable = list(self._source.inputs), list(self._source.overridable)
        self._labels = {each.output: each for each in self._source.labels}
        self._threads: tuple[int, ThreadPoolExecutor] | None = None
        with self._span("session_initialization"):
            self._programs = Programs(self._source, self._options)
            if self._options.optimized_model_filepath:
                from landbridge.onnxruntime.optimized_model import write_optimized  # few sessions write one

                write_optimized(Path(self._options.optimized_model_filepath), self._source, self._programs)
        #: By names of weights that feeds have other values of.
        self._by_overridden: Retained[frozenset[str], InferenceSession] = Retained(retained_programs(self._options))
        session = self._programs.session
        known = () if session is None else session.outputs
        self._outputs = [typed(output, known) for output in self._source.outputs]
        if self._profile is not None:  # onnxruntime does the same with sessions whose profile is never ended
            weakref.finalize(self, self._profile.end, with_kernels=False)

    # Properties -------------------------------------------------------------------------------------------------

    def get_inputs(self) -> list[NodeArg]:
        """Returns the inputs that a feed needs."""
        return list(self._inputs)

    def get_outputs(self) -> list[NodeArg]:
        """Returns the outputs, in the order in which ``run`` returns them."""
        return list(self._outputs)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Returns the weights that the file lists as inputs, so that a feed may replace their values."""
        return list(self._overridable)

    def get_modelmeta(self) -> ModelMetadata:
        """Returns the metadata of the model's file."""
        return self._source.metadata

    def get_session_options(self) -> SessionOptions:
        """Returns the options that the session was made with."""
        return self._options

    def get_providers(self) -> list[str]:
        """Returns the execution providers in use: the CPU."""
        return get_available_providers()

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Returns an empty dict of options for each provider."""
        return {CPU: {}}

    def set_providers(
        self, providers: Sequence[Any] | None = None, provider_options: Sequence[Mapping[Any, Any]] | None = None
    ) -> None:
        """Warns of each provider that is not available."""
        for each in providers or ():
            name = each[0] if isinstance(each, tuple) else each
            if name != CPU:
                warnings.warn(
                    f"Specified provider '{name}' is not in available provider names. Available providers: '{CPU}'; "
                    "for other devices compile and run with landbridge itself",
                    UserWarning,
                    stacklevel=3,
                )

    def disable_fallback(self) -> None:
        """Does nothing, as there is no fallback."""

    def enable_fallback(self) -> None:
        """Does nothing, as there is no fallback."""

    def get_profiling_start_time_ns(self) -> int:
        """Returns when the profile began, in nanoseconds since 1970; 0 without ``enable_profiling``."""
        return 0 if self._profile is None else self._profile.began_ns

    def get_input_memory_infos(self) -> list[OrtMemoryInfo]:
        """Returns the memory that each input is read from: that of the host."""
        return [OrtMemoryInfo() for _ in self._inputs]

    def get_output_memory_infos(self) -> list[OrtMemoryInfo]:
        """Returns the memory that each output is written to: that of the host."""
        return [OrtMemoryInfo() for _ in self._outputs]

    def end_profiling(self) -> str:
        """Writes the profile that ``enable_profiling`` requested and returns the name of its file; returns ``""``
        without one.

        It has the session's runs, and the kernels of one run, in the Trace Event Format of chrome://tracing and
        Perfetto. Raises OutputFileError where it cannot be written.
        """
        return "" if self._profile is None else self._profile.end()

    # Runs -------------------------------------------------------------------------------------------------------

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: RunOptions | None = None
    ) -> list[Array]:
        """Runs the model on ``input_feed``, by name, and returns the outputs ``output_names``, all where it is None or
        empty.

        Values are arrays, OrtValues or nested lists. The arrays returned are the caller's. Raises ValueError for a
        missing input, InvalidArgument for one that does not fit.
        """
        wanted = self._wanted(output_names)
        if run_options is not None and run_options.terminate:
            raise failures.Fail("Exiting due to terminate flag being set to true.")
        if run_options is not None and run_options.adapted:
            input_feed = {**run_options.adapted, **input_feed}
        results = self._results(input_feed)
        names = [value.name for value in self._outputs]
        return [self._named(names[index], results[index]) for index in wanted]

    def _named(self, output: str, result: Array) -> Any:
        """Converts ``result`` of ``output`` from numbers to the form of the file, text or a list of maps."""
        labels = self._labels.get(output)
        if labels is None:
            return result
        if labels.are_maps:
            return [dict(sorted(zip(labels.names, row, strict=True))) for row in result.tolist()]
        return np.array(labels.names, object)[result]

    def run_with_ort_values(
        self, output_names: Sequence[str] | None, input_dict_ort_values: Mapping[str, OrtValue], run_options: Any = None
    ) -> list[OrtValue]:
        """Runs as ``run`` does, with OrtValues as inputs and outputs."""
        return [OrtValue(array) for array in self.run(output_names, input_dict_ort_values, run_options)]

    def run_with_ortvaluevector(
        self,
        run_options: RunOptions | None,
        feed_names: Sequence[str],
        feeds: Sequence[OrtValue],
        fetch_names: Sequence[str],
        fetches: OrtValueVector,
        fetch_devices: object = None,
    ) -> None:
        """Runs as ``run`` does; results are appended to ``fetches``, or copied into its values where it has some.

        Raises InvalidArgument where there is not a value for each name.
        """
        if len(feed_names) != len(feeds) or (fetches and len(fetches) != len(fetch_names)):
            raise failures.InvalidArgument(
                f"{len(feed_names)} feed names and {len(feeds)} feeds, {len(fetch_names)} fetch names and "
                f"{len(fetches)} fetches: one for each is needed, or no fetches"
            )
        results = self.run(fetch_names, dict(zip(feed_names, feeds, strict=True)), run_options)
        for value, result in zip(list(fetches), results, strict=False):
            value.update_inplace(result)
        if not fetches:
            fetches.extend(map(OrtValue, results))

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[Sequence[Array], Any, str], object],
        user_data: Any,
        run_options: RunOptions | None = None,
    ) -> None:
        """Runs as ``run`` does, in another thread, which calls ``callback(results, user_data, error)``; ``error`` is
        ``""`` on success.
        """

        def work() -> None:
            try:
                results, error = self.run(output_names, input_feed, run_options), ""
            except Exception as raised:
                results, error = [], str(raised)
            callback(results, user_data, error)

        self._executor().submit(work)

    def io_binding(self) -> IOBinding:
        """Returns a new IOBinding to bind inputs and outputs with."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Runs the model with the bound inputs and outputs."""
        if run_options is not None and run_options.terminate:
            raise failures.Fail("Exiting due to terminate flag being set to true.")
        iobinding.run_by(self._results)

    def _span(self, name: str) -> AbstractContextManager[None]:
        return nullcontext() if self._profile is None else self._profile.span(name)

    # Implementation ---------------------------------------------------------------------------------------------

    def _executor(self) -> ThreadPoolExecutor:
        """Returns the one thread of ``run_async``; a child process, which lacks the parent's thread, makes its own."""
        from concurrent.futures import ThreadPoolExecutor  # its import takes 3 ms, for logging

        process = os.getpid()
        if self._threads is None or self._threads[0] != process:
            self._threads = process, ThreadPoolExecutor(1, "landbridge-run-async")
        return self._threads[1]

    def _wanted(self, names: Sequence[str] | None) -> list[int]:
        known = [value.name for value in self._outputs]
        for name in names or ():
            if name not in known:
                raise failures.InvalidArgument(f"Invalid output name:{name}; the model has {', '.join(known)}")
        return [known.index(name) for name in names or known]

    def _results(self, feed: Mapping[str, Any], out: Any = None) -> list[Array]:
        missing = [value.name for value in self._inputs if value.name not in feed]
        if missing:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({list(feed)}).")
        known = {value.name for value in (*self._inputs, *self._overridable)}
        for name in feed:
            if name not in known:
                raise failures.InvalidArgument(
                    f"Invalid input name: {name}; the model takes {', '.join(sorted(known))}"
                )
        overridden = frozenset(value.name for value in self._overridable if value.name in feed)
        if overridden:
            return self._overriding(overridden)._results(feed, out)
        arrays = {value.name: taken(value, feed[value.name]) for value in self._inputs}
        session = self._programs.session or self._programs.session_for({n: each.shape for n, each in arrays.items()})
        if self._profile is not None:
            self._profile.trace_later(session.executable, self._options.threads, arrays)
        try:
            with self._span("model_run"):
                return [np.asarray(each) for each in session(*arrays.values(), out=out)]
        except (InputError, ShapeError) as error:
            raise failures.InvalidArgument(str(error)) from error
        except LandbridgeError as error:
            raise failures.RuntimeException(str(error)) from error

    def _overriding(self, names: frozenset[str]) -> InferenceSession:
        """Returns the session of the model in which the weights ``names`` are inputs; it is compiled on first use."""

        def make() -> InferenceSession:
            self._programs.tell(
                "weights",
                "this run compiles the model once more, as the feed has values of weights: "
                f"{', '.join(sorted(names))}; another run with values of these compiles nothing",
            )
            model = self._source.model
            assert not isinstance(model, Executable)  # its other weights come from the model and need no feed
            options = self._options.without_initializers()  # they are in the model
            options.enable_profiling, options.optimized_model_filepath = False, ""
            return InferenceSession(model_file.with_inputs(model, names, options), options, self.get_providers())

        return self._by_overridden.get(names, make, self._programs.tell_drop)
