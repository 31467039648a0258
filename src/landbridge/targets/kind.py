"""TargetKind: the name of a family of targets, its options, and the facts that follow from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Literal, TypeGuard, get_args

from landbridge.errors import TargetError
from landbridge.memory_kind import MemoryKind
from landbridge.records import record
from landbridge.text.did_you_mean import did_you_mean

OptionValue = str | int | bool | tuple[str, ...]
Options = Mapping[str, OptionValue]

#: The form that lowering gives a kernel: tasks of loops over vectors, launches over a grid of workgroups, or plain
#: loops over single elements.
Form = Literal["vectors", "grid", "loops"]

#: Keys of the dict form that concern the Target itself, so that no option may have these names.
RESERVED = frozenset({"kind", "keys", "memory", "shares", "formats", "host"})

#: Integers of a target stay below this, so that every reader of its JSON can represent them.
_INT_END = 1 << 63
_TRUE, _FALSE = ("1", "true", "on", "yes"), ("0", "false", "off", "no")


@record(frozen=True)
class Option:
    """One option of a kind: its name, type, meaning, default and legal values.

    ``default`` None means that the option is unset, or that the kind's parser finds it. ``minimum`` bounds an int, and
    ``power_of_two`` says that no other is legal; ``choices`` lists the legal strings when not empty. A "list" is a
    tuple of strings without commas.
    """

    name: str
    type: Literal["str", "int", "bool", "list"]
    doc: str
    default: OptionValue | None = None
    minimum: int = 0
    choices: tuple[str, ...] = ()
    power_of_two: bool = False

    def convert(self, kind: str, value: object) -> OptionValue:
        """Returns ``value`` (typed, or text as in the string form) in this option's type; raises TargetError for
        illegal ones."""
        converted = self._convert(value)
        if converted is None or (self.choices and converted not in self.choices):
            raise TargetError(
                f"target {kind!r}: option {self.name!r} was given {value!r}; legal: {self.legal}. {self.doc}"
            )
        return converted

    @property
    def legal(self) -> str:
        """Returns the legal values in words, for messages and ``landbridge targets``."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        return {
            "str": "text without NUL",
            "int": f"{'a power of two' if self.power_of_two else 'an integer'}, at least {self.minimum}, below 2**63",
            "bool": "0 or 1",
            "list": "names joined by commas",
        }[self.type]

    def _convert(self, value: object) -> OptionValue | None:
        if self.type == "bool":
            if isinstance(value, bool):
                return value
            word = str(value).lower()
            return True if word in _TRUE else False if word in _FALSE else None
        if self.type == "int":
            return self._integer(value)
        if self.type == "list":
            items = value.split(",") if isinstance(value, str) else value
            if not isinstance(items, list | tuple):
                return None
            names = tuple(item for item in items if item != "")
            return names if all(_is_text(name) and "," not in name for name in names) else None
        return value if _is_text(value) else None

    def _integer(self, value: object) -> int | None:
        if isinstance(value, bool) or not isinstance(value, int | str):
            return None
        try:
            number = int(value)
        except ValueError:
            return None
        if self.power_of_two and number & (number - 1):
            return None
        return number if self.minimum <= number < _INT_END else None


def _is_text(value: object) -> TypeGuard[str]:
    """Returns whether ``value`` is text that files, and the arguments of other programs, can hold."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which JSON can contain
        return False
    return True


@record(frozen=True)
class TargetKind:
    """A family of targets, as a plugin registers it.

    ``parser`` completes the options that were given (unset ones are absent) with what follows from them or from this
    host; everything it returns is recorded in the Target. ``derive`` computes ``attrs``, facts that follow from the
    recorded options alone. ``memory`` and ``shares`` give the memory of a target whose description declares none, and
    whose memory it uses in place. ``device_types`` are the device names that can run code of this kind; ``default_for``
    are those for which this kind is the default when several could be used and none is named.

    ``form`` is the input of its code generator: "vectors", functions of tasks on vectors of ``vector-bits``, which with
    ``vector-registers`` it must have as options; "grid", launches within the limits of its options
    (``landbridge.targets.grid``); "loops", plain loops over single elements. ``on_host`` says that the code runs on the
    CPU of this process, on ordinary memory: branches are taken there, and kernels that other targets cannot run go
    there. ``formats`` are the formats of images that every device of the kind loads; empty if not known.
    """

    name: str
    doc: str
    options: tuple[Option, ...]
    device_types: tuple[str, ...]
    keys: tuple[str, ...] = ()
    default_for: tuple[str, ...] = ()
    form: Form = "vectors"
    on_host: bool = False
    formats: tuple[str, ...] = ()
    parser: Callable[[dict[str, OptionValue]], dict[str, OptionValue]] | None = None
    derive: Callable[[Options], dict[str, object]] | None = None
    memory: Callable[[Options], tuple[MemoryKind, ...]] | None = None
    shares: Callable[[Options], tuple[tuple[str, str], ...]] | None = None
    _by_name: dict[str, Option] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        if self.form not in get_args(Form):
            raise TargetError(f"target kind {self.name!r} wants form {self.form!r}; legal: {', '.join(get_args(Form))}")
        for option in self.options:
            if option.name in RESERVED or option.name in self._by_name:
                raise TargetError(
                    f"target kind {self.name!r} declares option {option.name!r}, which is "
                    f"{'reserved' if option.name in RESERVED else 'declared twice'}; choose another name "
                    f"(reserved: {', '.join(sorted(RESERVED))})"
                )
            self._by_name[option.name] = option

    def convert(self, given: Mapping[str, object]) -> dict[str, OptionValue]:
        """Returns ``given`` in the options' types; raises TargetError for an unknown name or an illegal value.

        None stands for an unset option.
        """
        typed: dict[str, OptionValue] = {}
        for name, value in given.items():
            option = self._by_name.get(name.replace("_", "-"))
            if option is None:
                raise TargetError(
                    f"target {self.name!r} has no option {name!r}{did_you_mean(name, self._by_name)}; "
                    f"legal: {', '.join(self._by_name) or 'none'}"
                )
            if value is not None:
                typed[option.name] = option.convert(self.name, value)
        return typed

    def resolve(self, given: Mapping[str, object]) -> dict[str, OptionValue]:
        """Returns all options of a target described by ``given``: checked, completed by the parser, then by
        defaults."""
        typed = self.convert(given)
        if self.parser is not None:
            typed = self.convert(self.parser(typed))
        for option in self.options:
            if option.default is not None:
                typed.setdefault(option.name, option.default)
        return {option.name: typed[option.name] for option in self.options if option.name in typed}
