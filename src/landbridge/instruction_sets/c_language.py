"""What a C compiler's code for an instruction set depends on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from landbridge.instruction_sets.cpus import Vectors
from landbridge.records import record


def _nothing(macros: Mapping[str, str]) -> str:
    return ""


@record(frozen=True)
class CLanguage:
    """How a C compiler says that it makes code of an instruction set, and how it makes code that can be linked here.

    ``macro`` is defined for this instruction set alone; ``further`` is what else has to hold for code that can be
    linked with Landbridge's, as a condition of C's preprocessor, and ``refusal(macros)`` says what of it does not hold,
    as the end of a sentence about a compiler. ``flags`` are options beside those of all instruction sets, and
    ``generic`` those for code that runs on every CPU of the instruction set.
    ``features(macros)`` are LLVM's names of the features that code may use, and ``vectors(macros)`` the registers, from
    the macros that the compiler defines. ``takes_features``: it takes single features as ``-mNAME``, so that this
    host's can be stated. ``names_cpus``: ``-march=`` takes the names of CPUs; else ``-mcpu=`` does, and ``-march=``
    those of versions of the architecture, which begin with ``armv``.
    """

    macro: str
    flags: tuple[str, ...]
    features: Callable[[Mapping[str, str]], Iterable[str]]
    vectors: Callable[[Mapping[str, str]], Vectors]
    takes_features: bool = False
    names_cpus: bool = True
    generic: tuple[str, ...] = ()
    further: str = ""
    refusal: Callable[[Mapping[str, str]], str] = _nothing

    def cpu_option(self, cpu: str) -> str:
        """Returns the option of compilers for ``cpu``, a CPU or a version of the architecture."""
        return f"-march={cpu}" if self.names_cpus or cpu.startswith("armv") else f"-mcpu={cpu}"

    @property
    def condition(self) -> str:
        """Returns the condition of C's preprocessor under which code can be linked with Landbridge's."""
        return f"defined({self.macro}){f' && {self.further}' if self.further else ''}"
