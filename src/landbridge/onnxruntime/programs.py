"""The compiled programs of a session's model: one for all sizes where possible, else one for each size that occurs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from landbridge.compiler.api import compile
from landbridge.errors import CompileError, FallbackWarning, ImportModelError, ModelWarning, ShapeError
from landbridge.executable.executable import Executable
from landbridge.frontend.onnx.data_rules import DataRules
from landbridge.onnxruntime import model_file
from landbridge.onnxruntime.capi import onnxruntime_pybind11_state as failures
from landbridge.onnxruntime.lru_cache import Retained
from landbridge.onnxruntime.options import SessionOptions
from landbridge.reporting.stages import listening
from landbridge.reporting.warning_notes import warn
from landbridge.session import Session
from landbridge.sizes.dim import Dim

#: Programs that are kept of one model, where the options say no other number: the entry that says one.
RETAINED_PROGRAMS = "landbridge.kept_programs"
_RETAINED = 8

#: The entry that says whether a first program may run until the full one is there, as ``landbridge.compile`` has it.
OPTIMIZE = "landbridge.optimize"

Shapes = Mapping[str, tuple[int, ...]]


class Programs:
    """Of ``model``, a file, bytes, or an Executable; ``are_named``: names of its classes are given back elsewhere.

    Raises errors of onnxruntime. A compile during a run is told in a FallbackWarning, once for each reason.
    """

    def __init__(
        self,
        model: bytes | Path | Executable,
        options: SessionOptions,
        external: DataRules,
        *,
        has_open: bool,
        are_named: bool,
    ) -> None:
        self._model, self._options, self._external, self._are_named = model, options, external, are_named
        self._limit = retained_programs(options)
        self._reported: set[str] = set()
        self._why = ""
        self._by_shapes: Retained[tuple[tuple[int, ...], ...], Session] = Retained(self._limit)
        #: For all sizes; None where the model is compiled for each that comes.
        self.session: Session | None = None
        with as_onnxruntime():
            try:
                self.session = self._session(self.executable())
            except ImportModelError:
                if not isinstance(model, Executable):
                    model_file.read(model)  # raises InvalidProtobuf, as onnxruntime does, where no message can be read
                raise
            except CompileError as error:
                if not has_open:
                    raise
                self._why = str(error).partition("\n")[0]

    def session_for(self, shapes: Shapes) -> Session:
        """Returns a Session for inputs of ``shapes``."""
        if self.session is not None:
            return self.session
        return self._by_shapes.get(tuple(shapes.values()), lambda: self._compiled(shapes), self.tell_drop)

    def for_all_sizes(self) -> Executable:
        """Returns the program for all sizes; raises InvalidArgument where there is none."""
        if self.session is None:
            raise failures.InvalidArgument(
                f"the model needs a program for each choice of sizes: {self._why}; state sizes by "
                "SessionOptions.add_free_dimension_override_by_name"
            )
        return self.session.executable

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

    def executable(self, shapes: Shapes | None = None, dump: Path | None = None) -> Executable:
        """Returns the program for ``shapes``, or for all sizes; IR after each pass goes to the folder ``dump``."""
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
                optimize=_optimize(self._options),
            )

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
