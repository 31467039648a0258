"""The part of the CPU runtime's source that an instruction set brings."""

from __future__ import annotations

from landbridge.records import record


@record(frozen=True)
class RuntimeSource:
    """LLVM IR of an instruction set, in the files ``float_control.ll`` and ``spin.ll`` of ``package``, and its numbers.

    ``float_control.ll`` defines ``landbridge.float_control`` and ``landbridge.set_float_control``, which read and write
    the register that says how the thread computes with floats. It is set to ``keep`` (rounding to nearest, no traps) or
    ``flush`` (the same, with denormal floats taken and given as zeros); ``unset`` is a value that it never has.
    ``spin.ll`` defines ``landbridge.pause`` and ``landbridge.spent``, the units of which ``spin`` are about 20 us.
    ``futex`` is the number of Linux's system call.
    """

    package: str
    futex: int
    spin: int
    keep: int
    flush: int
    unset: int

    def text(self) -> str:
        """Returns the source."""
        from importlib.resources import files  # imported here, as a run does not need it

        names = ("float_control.ll", "spin.ll")
        return "\n".join(files(self.package).joinpath(name).read_text(encoding="utf-8") for name in names)

    @property
    def numbers(self) -> dict[str, int]:
        """Returns the numbers by the words in brackets that stand for them in the runtime's source."""
        return {
            "SYSCALL": self.futex,
            "SPIN": self.spin,
            "KEEP": self.keep,
            "FLUSH": self.flush,
            "UNSET": self.unset,
        }
