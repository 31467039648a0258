"""The compiled programs of a session's model: one for all sizes where possible, else one for each size that occurs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from landbridge.compiler.api import check_compiler, compile
from landbridge.errors import CompileError, FallbackWarning, ImportModelError, ModelWarning, ShapeError
from landbridge.executable.executable import Executable
from landbridge.frontend.onnx.data_rules import OF_THE_MODEL
from landbridge.onnxruntime import model_file
from landbridge.onnxruntime.capi import onnxruntime_pybind11_state as failures
from landbridge.onnxruntime.lru_cache import Retained
from landbridge.onnxruntime.model_facts import UNTYPED
from landbridge.onnxruntime.model_source import ModelSource
from landbridge.onnxruntime.options import SessionOptions
from landbridge.process.locks import new_lock
from landbridge.reporting.stages import listening
from landbridge.reporting.warning_notes import warn
from landbridge.session import Session
from landbridge.sizes.dim import Dim

if TYPE_CHECKING:
    from landbridge.compiler.background_compile import BackgroundCompile
    from landbridge.onnxruntime.first_sessions import FirstSessions

#: Programs that are kept of one model, where the options say no other number: the entry that says one.
RETAINED_PROGRAMS = "landbridge.kept_programs"
_RETAINED = 8

#: The entry that says whether a first program may run until the full one is there, as ``landbridge.compile`` has it.
OPTIMIZE = "landbridge.optimize"

Shapes = Mapping[str, tuple[int, ...]]


class Programs:
    """Of ``source``, whose labels, names of classes, are given back elsewhere.

    Raises errors of onnxruntime. A compile during a run is told in a FallbackWarning, once for each reason. Where the
    options let first programs run, a model with open dimensions is compiled in the background, and errors of that
    compile are raised by the first run that needs its result.
    """

    def __init__(self, source: ModelSource, options: SessionOptions) -> None:
        self._source, self._options = source, options
        self._model, self._external, self._are_named = source.model, source.external, bool(source.labels)
        self._limit = retained_programs(options)
        self._reported: set[str] = set()
        self._why = ""
        self._by_shapes: Retained[tuple[tuple[int, ...], ...], Session] = Retained(self._limit)
        #: For all sizes; None where the model is compiled for each that comes, and while it is compiled in the
        #: background.
        self.session: Session | None = None
        self._lock = new_lock()
        self._first: FirstSessions | None = None
        full = self._in_background()
        if isinstance(full, Executable):
            self.session = self._session(full)
        elif full is not None:
            from landbridge.onnxruntime.first_sessions import FirstSessions  # few sessions want first programs

            assert not isinstance(source.model, Executable)
            self._first = FirstSessions(
                source.model, source.inputs, dict(options.free_dimensions), full, options.threads
            )
        else:
            self._compile_for_all()

    def session_for(self, shapes: Shapes) -> Session:
        """Returns a Session for inputs of ``shapes``; waits for a compile in the background where that must be."""
        if self._first is not None:
            first = self._first_for(self._first, shapes)
            if first is not None:
                return first
        if self.session is not None:
            return self.session
        return self._by_shapes.get(tuple(shapes.values()), lambda: self._compiled(shapes), self.tell_drop)

    def for_all_sizes(self) -> Executable:
        """Returns the program for all sizes, never a first one; raises InvalidArgument where there is none."""
        if self._first is not None:
            self._first.pending.wait()
            self._end_first(self._first)
            if self.session is None:
                self._compile_for_all()
        if self.session is None:
            raise failures.InvalidArgument(
                f"the model needs a program for each choice of sizes: {self._why}; state sizes by "
                "SessionOptions.add_free_dimension_override_by_name"
            )
        executable = self.session.executable
        if executable.replacement is None:
            return executable
        with as_onnxruntime():
            return self.executable(optimize="full")

    def tell(self, reason: str, text: str) -> None:
        """Warns with ``text``, once for each ``reason``."""
        if reason not in self._reported:
            self._reported.add(reason)
            warn(text, FallbackWarning)

    def tell_drop(self) -> None:
        """Warns that more programs are needed than are retained."""
        self.tell(
            "drop",
            f"runs need more than {self._limit} programs of this model; the one that was not used for longest goes, "
            "and a run that needs it again compiles it again; keep more by "
            f"SessionOptions.add_session_config_entry({RETAINED_PROGRAMS!r}, {str(4 * self._limit)!r})",
        )

    def executable(
        self,
        shapes: Shapes | None = None,
        dump: Path | None = None,
        optimize: Literal["full", "fast"] | None = None,
    ) -> Executable:
        """Returns the program for ``shapes``, or for all sizes; IR after each pass goes to the folder ``dump``.

        ``optimize`` as ``landbridge.compile`` has it, else as the options say.
        """
        if isinstance(self._model, Executable):
            return self._model
        dims: dict[str, Dim | str | int] = {**self._options.free_dimensions}
        # A program that imports onnxruntime expects no output on its terminal.
        with warnings.catch_warnings(), listening(lambda stage: None):
            if self._are_named:
                warnings.filterwarnings("ignore", "output .* (is text|is a list of maps)", ModelWarning)
            return compile(
                self._model,
                dims=dims or None,
                shapes=shapes,
                external_data=self._external.folder,
                allow_links=self._external.allow_links,
                dump=dump,
                optimize=optimize or _optimize(self._options),
            )

    def _compile_for_all(self) -> None:
        """Compiles the model for all sizes; where that is impossible, and sizes are open, stores why."""
        with as_onnxruntime():
            try:
                self.session = self._session(self.executable())
            except ImportModelError:
                if not isinstance(self._model, Executable):
                    # raises InvalidProtobuf, as onnxruntime does, where no message can be read
                    model_file.read(self._model)
                raise
            except CompileError as error:
                if not self._source.has_open:
                    raise
                self._why = str(error).partition("\n")[0]

    def _in_background(self) -> Executable | BackgroundCompile | None:
        """Returns the program of a model with open dimensions, or its compile that was started in the background.

        Returns None where there is none: where the options say so, or what they change is not of the model's file, and
        where the description of the model needs its program.
        """
        model = self._model
        if (
            _optimize(self._options) == "full"
            or isinstance(model, Executable)
            or not self._source.has_open
            or self._external != OF_THE_MODEL
            or self._are_named
            or any(value.type == UNTYPED for value in self._source.outputs)
        ):
            return None
        from landbridge.compiler.first_result import full_in_background  # few sessions want first programs

        with as_onnxruntime():
            check_compiler()
            return full_in_background(
                model,
                self._options.free_dimensions,
                f"the model is compiled for each choice of sizes, of which the last {self._limit} are kept",
            )

    def _first_for(self, first: FirstSessions, shapes: Shapes) -> Session | None:
        """Returns the Session of a first program for ``shapes``; None once runs use what ``landbridge.compile`` makes,
        for which it waits where there is no first program.
        """
        if first.pending.take() is None and not first.pending.failure:
            session = first.session_for(shapes)
            if session is not None:
                return session
            first.pending.wait()
        self._end_first(first)
        return None

    def _end_first(self, first: FirstSessions) -> None:
        """Lets runs use the program for all sizes, which is no longer being compiled, or one for each choice of
        sizes where its compile failed.
        """
        with self._lock:
            if self._first is not first:  # another thread has done it
                return
            full = first.pending.take()
            if full is not None:
                self.session = self._session(full)
            elif first.pending.failure:  # which was told
                self._why = first.pending.failure.partition("\n")[0]
                self._reported.add("shapes")
            else:  # in a child after a fork, which cannot wait for a process of its parent
                self._compile_for_all()
            self._first = None

    def _compiled(self, shapes: Shapes) -> Session:
        shown = ", ".join(f"{name}{list(shape)}" for name, shape in shapes.items())
        self.tell(
            "shapes",
            f"this run compiles the model for {shown}, and so does one of other shapes, as no program can be made for "
            f"all of them: {self._why}. The last {self._limit} are kept; state sizes by "
            "SessionOptions.add_free_dimension_override_by_name to compile once",
        )
        with as_onnxruntime():
            return self._session(self.executable(shapes))

    def _session(self, executable: Executable) -> Session:
        return Session(executable, num_threads=self._options.threads)


def retained_programs(options: SessionOptions) -> int:
    """Returns how many programs of one model ``options`` retain; raises InvalidArgument for an illegal number."""
    text = options.config_entry(RETAINED_PROGRAMS) or str(_RETAINED)
    if not (text.isascii() and text.isdigit() and int(text)):
        raise failures.InvalidArgument(f"{RETAINED_PROGRAMS} is {text!r}; a whole number from 1 is legal")
    return int(text)


def _optimize(options: SessionOptions) -> Literal["full", "fast"]:
    """Returns what ``options`` say of first programs; raises InvalidArgument for another word."""
    text = options.config_entry(OPTIMIZE) or "full"
    if text == "fast":
        return "fast"
    if text == "full":
        return "full"
    raise failures.InvalidArgument(f"{OPTIMIZE} is {text!r}; legal: 'full', 'fast'")


@contextmanager
def as_onnxruntime() -> Iterator[None]:
    """Converts errors of a compile to those of onnxruntime, with the same text."""
    try:
        yield
    except ImportModelError as error:
        raise failures.InvalidGraph(str(error)) from error
    except ShapeError as error:
        raise failures.InvalidArgument(str(error)) from error
    except CompileError as error:
        raise failures.NotImplemented(str(error)) from error
