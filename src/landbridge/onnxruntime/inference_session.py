"""InferenceSession: onnxruntime's class, on a Session of Landbridge."""

from __future__ import annotations

import os
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np

from landbridge.compiler import compile
from landbridge.dtypes import numpy_dtype
from landbridge.errors import CompileError, ImportModelError, InputError, LandbridgeError, ModelWarning, ShapeError
from landbridge.frontend.onnx.labels import has_names, labels_of
from landbridge.frontend.onnx.repaired import type_outputs
from landbridge.locks import cached_property
from landbridge.onnxruntime import model_file
from landbridge.onnxruntime.capi import onnxruntime_pybind11_state as failures
from landbridge.onnxruntime.io_binding import IOBinding
from landbridge.onnxruntime.memory_info import OrtMemoryInfo
from landbridge.onnxruntime.model_facts import ModelMetadata, NodeArg, arguments, metadata, spelled, typed
from landbridge.onnxruntime.options import RunOptions, SessionOptions
from landbridge.onnxruntime.ort_value import OrtValue
from landbridge.session import Session
from landbridge.sizes.dim import Dim

Array = np.ndarray[Any, Any]

_CPU = "CPUExecutionProvider"

#: Sizes that a model is compiled for at a time, where its dimensions cannot stay open.
_KEPT = 8


def get_available_providers() -> list[str]:
    """The one provider: this host's CPU."""
    return [_CPU]


class InferenceSession:
    """A model, compiled and ready to run; any number of threads may call ``run``.

    ``path_or_bytes`` is the path of an ONNX file or its bytes. Providers that are not there are a warning, and the CPU
    runs the model. Raises onnxruntime's exceptions (``capi.onnxruntime_pybind11_state``), whose texts say the way out.
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
        self._options = sess_options or SessionOptions()
        self.set_providers(providers, provider_options)
        model = path_or_bytes if isinstance(path_or_bytes, bytes) else Path(path_or_bytes)
        proto = model_file.read(model)
        type_outputs(proto)
        self._external = model_file.external_data(model, self._options)
        with _as_onnxruntime():
            self._model = model_file.with_options(model, self._options)
        given = {initializer.name for initializer in proto.graph.initializer}
        self._inputs = list(arguments(value for value in proto.graph.input if value.name not in given))
        self._overridable = list(arguments(value for value in proto.graph.input if value.name in given))
        self._outputs = list(arguments(proto.graph.output))
        self._metadata = metadata(proto)
        self._labels = {each.output: each for each in labels_of(proto)} if has_names(proto) else {}
        self._threads: tuple[int, ThreadPoolExecutor] | None = None
        self._by_shape: OrderedDict[tuple[tuple[int, ...], ...], Session] = OrderedDict()
        #: By names of weights that feeds have other values of.
        self._by_overridden: dict[frozenset[str], InferenceSession] = {}
        with _as_onnxruntime():
            self._session = self._open_session()
        if self._session is not None:
            self._outputs = [typed(output, self._session.outputs) for output in self._outputs]

    # What it is -------------------------------------------------------------------------------------------------

    def get_inputs(self) -> list[NodeArg]:
        """The inputs that a feed needs."""
        return list(self._inputs)

    def get_outputs(self) -> list[NodeArg]:
        """The outputs, in the order in which ``run`` gives them."""
        return list(self._outputs)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Weights that the file lists as inputs: a feed may have other values of them."""
        return list(self._overridable)

    def get_modelmeta(self) -> ModelMetadata:
        """What the file says of the model."""
        return self._metadata

    def get_session_options(self) -> SessionOptions:
        """The options that it was made with."""
        return self._options

    def get_providers(self) -> list[str]:
        """Where it runs: the CPU."""
        return get_available_providers()

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """No options."""
        return {_CPU: {}}

    def set_providers(
        self, providers: Sequence[Any] | None = None, provider_options: Sequence[Mapping[Any, Any]] | None = None
    ) -> None:
        """Warn of each provider that is not there."""
        for each in providers or ():
            name = each[0] if isinstance(each, tuple) else each
            if name != _CPU:
                warnings.warn(
                    f"Specified provider '{name}' is not in available provider names. Available providers: '{_CPU}'; "
                    "for other devices compile and run with landbridge itself",
                    UserWarning,
                    stacklevel=3,
                )

    def disable_fallback(self) -> None:
        """Nothing: there is nothing to fall back from."""

    def enable_fallback(self) -> None:
        """Nothing: there is nothing to fall back from."""

    def get_profiling_start_time_ns(self) -> int:
        """0: there are no profiles."""
        return 0

    def get_input_memory_infos(self) -> list[OrtMemoryInfo]:
        """The memory that each input is read from: the host's."""
        return [OrtMemoryInfo() for _ in self._inputs]

    def get_output_memory_infos(self) -> list[OrtMemoryInfo]:
        """The memory that each output is written to: the host's."""
        return [OrtMemoryInfo() for _ in self._outputs]

    def end_profiling(self) -> str:
        """No file: ``landbridge trace`` shows kernels and times."""
        return ""

    # Runs -------------------------------------------------------------------------------------------------------

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: RunOptions | None = None
    ) -> list[Array]:
        """The outputs called ``output_names``, all where it is None or empty, of a run on ``input_feed`` by name.

        Values are arrays, OrtValues or nested lists. The arrays returned are the caller's. Raises ValueError for a
        missing input, InvalidArgument for one that does not fit.
        """
        wanted = self._wanted(output_names)
        if run_options is not None and run_options.terminate:
            raise failures.Fail("Exiting due to terminate flag being set to true.")
        results = self._results(input_feed)
        names = [value.name for value in self._outputs]
        return [self._named(names[index], results[index]) for index in wanted]

    def _named(self, output: str, result: Array) -> Any:
        """``result`` of ``output`` as the file has it, text or a list of maps, where a program gives numbers."""
        labels = self._labels.get(output)
        if labels is None:
            return result
        if labels.are_maps:
            return [dict(sorted(zip(labels.names, row, strict=True))) for row in result.tolist()]
        return np.array(labels.names, object)[result]

    def run_with_ort_values(
        self, output_names: Sequence[str] | None, input_dict_ort_values: Mapping[str, OrtValue], run_options: Any = None
    ) -> list[OrtValue]:
        """As ``run``, of OrtValues and into OrtValues."""
        return [OrtValue(array) for array in self.run(output_names, input_dict_ort_values, run_options)]

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[Sequence[Array], Any, str], object],
        user_data: Any,
        run_options: RunOptions | None = None,
    ) -> None:
        """As ``run``, in another thread, which calls ``callback(results, user_data, error)``: no error is ``""``."""

        def work() -> None:
            try:
                results, error = self.run(output_names, input_feed, run_options), ""
            except Exception as raised:
                results, error = [], str(raised)
            callback(results, user_data, error)

        self._executor().submit(work)

    def io_binding(self) -> IOBinding:
        """What to bind inputs and outputs with."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Run with what is bound."""
        if run_options is not None and run_options.terminate:
            raise failures.Fail("Exiting due to terminate flag being set to true.")
        iobinding.run_by(self._results)

    # How --------------------------------------------------------------------------------------------------------

    def _executor(self) -> ThreadPoolExecutor:
        """The one thread of ``run_async``; a child process, which does not have the parent's, gets its own."""
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
        arrays = [self._array(value, feed[value.name]) for value in self._inputs]
        session = self._session or self._session_for(arrays)
        try:
            return [np.asarray(each) for each in session(*arrays, out=out)]
        except (InputError, ShapeError) as error:
            raise failures.InvalidArgument(str(error)) from error
        except LandbridgeError as error:
            raise failures.RuntimeException(str(error)) from error

    def _overriding(self, names: frozenset[str]) -> InferenceSession:
        """The session of the model in which the weights ``names`` are inputs; compiled the first time."""
        found = self._by_overridden.get(names)
        if found is None:
            options = copy(self._options)
            options.initializers = {}  # they are in the model
            found = InferenceSession(model_file.with_inputs(self._model, names, options), options, self.get_providers())
            found = self._by_overridden.setdefault(names, found)
        return found

    def _array(self, wanted: NodeArg, value: Any) -> Array:
        """``value`` as an array that the model takes; raises InvalidArgument where it does not fit."""
        array = value.numpy() if isinstance(value, OrtValue) else value
        if isinstance(array, list | tuple | int | float | bool):
            array = np.asarray(array, self._dtypes[wanted.name])
        array = np.asarray(array, order="C")
        if array.dtype != self._dtypes[wanted.name]:
            raise failures.InvalidArgument(
                f"Unexpected input data type. Actual: ({spelled(array.dtype)}) , expected: ({wanted.type}) for input: "
                f"{wanted.name}"
            )
        if wanted.shape and array.ndim != len(wanted.shape):
            raise failures.InvalidArgument(
                f"Invalid rank for input: {wanted.name} Got: {array.ndim} Expected: {len(wanted.shape)} Please fix "
                "either the inputs/outputs or the model."
            )
        for axis, (got, expected) in enumerate(zip(array.shape, wanted.shape, strict=False)):
            if isinstance(expected, int) and got != expected:
                raise failures.InvalidArgument(
                    f"Got invalid dimensions for input: {wanted.name} for the following indices\n index: {axis} "
                    f"Got: {got} Expected: {expected}\n Please fix either the inputs/outputs or the model."
                )
        return array

    @cached_property
    def _dtypes(self) -> dict[str, np.dtype[Any]]:
        spelled = {"float": "float32", "double": "float64"}
        plain = {value.name: value.type.removeprefix("tensor(").removesuffix(")") for value in self._inputs}
        return {name: np.dtype(numpy_dtype(spelled.get(dtype, dtype))) for name, dtype in plain.items()}

    def _open_session(self) -> Session | None:
        """The Session for all sizes; None where the model is to be compiled for each that comes."""
        try:
            return self._made()
        except ImportModelError:
            raise
        except CompileError:
            is_open = any(not isinstance(extent, int) for value in self._inputs for extent in value.shape)
            if not is_open:
                raise
            return None

    def _session_for(self, arrays: Sequence[Array]) -> Session:
        key = tuple(array.shape for array in arrays)
        found = self._by_shape.get(key)
        if found is None:
            shapes = {value.name: array.shape for value, array in zip(self._inputs, arrays, strict=True)}
            with _as_onnxruntime():
                found = self._by_shape[key] = self._made(shapes=shapes)
            if len(self._by_shape) > _KEPT:
                self._by_shape.popitem(last=False)
        return found

    def _made(self, shapes: Mapping[str, Sequence[int | str]] | None = None) -> Session:
        dims: dict[str, Dim | str | int] = {**self._options.free_dimensions}
        with warnings.catch_warnings():
            if self._labels:  # names are given back here
                warnings.filterwarnings("ignore", "output .* (is text|is a list of maps)", ModelWarning)
            executable = compile(
                self._model,
                dims=dims or None,
                shapes=shapes,
                external_data=self._external.folder,
                allow_links=self._external.allow_links,
            )
        return Session(executable, num_threads=self._options.intra_op_num_threads or None)


@contextmanager
def _as_onnxruntime() -> Iterator[None]:
    """Errors of a compile become those of onnxruntime, with the same text."""
    try:
        yield
    except ImportModelError as error:
        raise failures.InvalidGraph(str(error)) from error
    except ShapeError as error:
        raise failures.InvalidArgument(str(error)) from error
    except CompileError as error:
        raise failures.NotImplemented(str(error)) from error
