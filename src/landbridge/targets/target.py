"""Target: everything that a compiler may know of the machine it compiles for; frozen, comparable, and text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from types import MappingProxyType
from typing import Any, Protocol, TypeVar, cast

from landbridge.errors import DeviceError, LandbridgeError, TargetError
from landbridge.memory_kind import MemoryKind, normalize_scope
from landbridge.named_devices import device_named
from landbridge.process.locks import cached_property
from landbridge.records import record
from landbridge.targets import registry, tags, text
from landbridge.targets.declared_memory import memory_kinds, shared_scopes, words
from landbridge.targets.elsewhere import instead_of
from landbridge.targets.kind import RESERVED, Form, Options, TargetKind
from landbridge.text.did_you_mean import did_you_mean


class DescribedDevice(Protocol):
    """The part of a Device that ``Target.from_device`` reads."""

    @property
    def name(self) -> str: ...
    @property
    def index(self) -> int: ...
    @property
    def api(self) -> object: ...
    @property
    def memory_kinds(self) -> Mapping[str, MemoryKind]: ...


_Form = TypeVar("_Form", bound="Iterable[str]")

#: The most characters of a Target's text in its repr.
_SHOWN = 200


@record(frozen=True, init=False, eq=False, repr=False)
class Target:
    """A machine to compile for.

    Built from option text (``"llvm -mcpu=native -num-cores=2"``), a tag, JSON text, a dict
    (``{"kind": "llvm", "mcpu": "native"}``) or another Target. Building resolves it: facts of this host are looked up
    and recorded, so the Target means the same on every machine that reads it later. Code generators read the Target and
    nothing else.

    ``kind`` is the kind's name. ``options`` are its options, typed and complete. ``attrs`` are facts that follow from
    the options. ``device_types`` are the device names that run its code. ``memory`` has one MemoryKind per scope.
    ``shares`` are the (device name, scope) pairs whose memory it uses in place. ``keys`` are words by which passes
    select. ``form`` and ``on_host`` are its kind's: the form that lowering makes for its code generator, and whether
    the code runs on the CPU of this process. ``formats`` are the formats of images that its device loads, empty if not
    known. ``host`` is the Target of the CPU that drives it, if any.

    Raises TargetError for an unknown kind, option or value, naming what is legal.
    """

    kind: str
    options: Options
    attrs: Mapping[str, object]
    device_types: tuple[str, ...]
    memory: tuple[MemoryKind, ...]
    shares: tuple[tuple[str, str], ...]
    keys: tuple[str, ...]
    form: Form
    on_host: bool
    formats: tuple[str, ...]
    host: Target | None

    def __init__(self, spec: str | Mapping[str, object] | Target, host: str | Target | None = None) -> None:
        with _refusals():
            form = _form(spec)
            if host is not None:
                form["host"] = host
            self._fill(form, resolve=True)

    @classmethod
    def from_json(cls, json_text: str) -> Target:
        """Returns the Target whose ``to_json()`` this is, as recorded: nothing is resolved again."""
        target = cls.__new__(cls)
        with _refusals():
            target._fill(_form(json_text), resolve=False)
        return target

    @classmethod
    def from_device(cls, device: DescribedDevice | str, kind: str | None = None) -> Target:
        """Returns the Target of ``device``, which may be a name as ``"opencl:0"``.

        It has the device's ``target_properties``, its memory kinds unchanged, and the formats of images that its
        ``module_formats`` names. ``kind`` chooses among the kinds that compile for such a device; without it there must
        be one.
        """
        if isinstance(device, str):
            device = cast("DescribedDevice", device_named(device))
        if not hasattr(device, "api"):
            raise TargetError(
                f"from_device takes the name of a device, as 'opencl:0', or what landbridge.device(name) gives, not "
                f"{type(device).__name__}"
            )
        form = _described(
            device, getattr(device.api, "target_properties", None), dict[str, Any], "a mapping of options"
        )
        form["kind"] = kind or form.get("kind") or registry.kind_for_device(device.name)
        if (formats := getattr(device.api, "module_formats", None)) is not None:
            form["formats"] = _described(
                device, formats, list[str], "a sequence of formats, each a str", "module_formats"
            )
        return cls({**form, "memory": list(device.memory_kinds.values())})

    def to_json(self) -> str:
        """Returns canonical JSON text of the whole Target: equal Targets give equal text."""
        return self._json

    def to_dict(self) -> dict[str, Any]:
        """Returns the dict form, of JSON types only; ``Target(t.to_dict()) == t``."""
        form: dict[str, Any] = {"kind": self.kind}
        form.update((k, list(v) if isinstance(v, tuple) else v) for k, v in self.options.items())
        form["keys"] = list(self.keys)
        form["memory"] = [
            {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(memory).items()}
            for memory in self.memory
        ]
        form["shares"] = [list(pair) for pair in self.shares]
        if self.formats:
            form["formats"] = list(self.formats)
        form["host"] = None if self.host is None else self.host.to_dict()
        return form

    def memory_kind(self, scope: str) -> MemoryKind:
        """Returns the MemoryKind of ``scope`` (``""`` means ``"global"``); raises TargetError naming the legal
        scopes."""
        for memory in self.memory:
            if memory.scope == normalize_scope(scope):
                return memory
        known = [memory.scope for memory in self.memory]
        raise TargetError(
            f"target {self.kind!r} has no memory scope {scope!r}{did_you_mean(scope, known)}; "
            f"legal: {', '.join(known) or 'none; state memory=[...]'}{self._of_a_device()}"
        )

    def _of_a_device(self) -> str:
        """Returns where scopes come from that a kind does not have by itself, in a clause of an error."""
        if self.on_host or not self.device_types:
            return ""
        return f"; Target.from_device('{self.device_types[0]}:0') has those of that device"

    @property
    def mcpu(self) -> str:
        """Returns the CPU's name, as LLVM spells it."""
        return str(self._option("mcpu"))

    @property
    def mattr(self) -> tuple[str, ...]:
        """Returns the CPU features switched on or off, as LLVM spells them: ``("+avx2", "-sse4a")``."""
        value = self._option("mattr")
        return value if isinstance(value, tuple) else (str(value),)

    @property
    def mtriple(self) -> str:
        """Returns the LLVM triple: instruction set, vendor, system."""
        return str(self._option("mtriple"))

    @property
    def num_cores(self) -> int:
        """Returns the number of cores that kernels are split for."""
        return self._integer("num-cores")

    @property
    def vector_bits(self) -> int:
        """Returns the width of one vector register in bits."""
        return self._integer("vector-bits")

    @property
    def vector_registers(self) -> int:
        """Returns the number of vector registers that a kernel may use."""
        return self._integer("vector-registers")

    @property
    def l1_bytes(self) -> int:
        """Returns the bytes of the L1 data cache of one core."""
        return self._integer("l1-bytes")

    @property
    def l2_bytes(self) -> int:
        """Returns the bytes of L2 of one core."""
        return self._integer("l2-bytes")

    def __str__(self) -> str:
        """Returns text that ``Target`` parses to an equal Target: option text if that says everything."""
        return text.format_options(self.kind, self.options) if self._is_plain else self._json

    def __repr__(self) -> str:
        """Returns its text, cut if it is long: a native CPU has dozens of features."""
        whole = str(self)
        return f"Target({whole if len(whole) <= _SHOWN else f'{whole[:_SHOWN]}...'!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and self._json == other._json

    def __hash__(self) -> int:
        return hash(self._json)

    def __reduce__(self) -> tuple[object, ...]:
        return Target.from_json, (self._json,)

    @cached_property
    def _json(self) -> str:
        return text.format_json(self.to_dict())

    @cached_property
    def _is_plain(self) -> bool:
        kind = registry.get_kind(self.kind)
        memory = kind.memory(self.options) if kind.memory else ()
        shares = kind.shares(self.options) if kind.shares else ()
        extras = self.memory, self.shares, self.keys, self.formats, self.host
        return extras == (memory, shares, kind.keys, kind.formats, None)

    def _option(self, name: str) -> object:
        try:
            return self.options[name]
        except KeyError:
            raise TargetError(
                f"target {self.kind!r} does not state {name!r}; it states: {', '.join(self.options) or 'nothing'}"
            ) from None

    def _integer(self, name: str) -> int:
        value = self._option(name)
        if not isinstance(value, int):
            raise TargetError(f"target {self.kind!r}: option {name!r} is {value!r}, not an integer")
        return value

    def _fill(self, form: dict[str, object], resolve: bool) -> None:
        kind = _kind_of(str(form["kind"]))
        given = {name: value for name, value in form.items() if name not in RESERVED}
        options = kind.resolve(given) if resolve else kind.convert(given)
        values = {
            "kind": kind.name,
            "options": MappingProxyType(options),
            "attrs": MappingProxyType(kind.derive(options) if kind.derive else {}),
            "device_types": kind.device_types,
            "memory": memory_kinds(kind, options, form.get("memory")),
            "shares": shared_scopes(kind, options, form.get("shares")),
            "keys": kind.keys if form.get("keys") is None else words("keys", form["keys"]),
            "form": kind.form,
            "on_host": kind.on_host,
            "formats": kind.formats if form.get("formats") is None else words("formats", form["formats"]),
            "host": _host(form.get("host"), resolve),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)


@contextmanager
def _refusals() -> Iterator[None]:
    """Convert Python's refusals to print a value or to nest deeper into a TargetError."""
    try:
        yield
    except TargetError:
        raise
    except (ValueError, RecursionError) as error:
        raise TargetError(f"the target states something that is too large: {error}") from error


def _described(
    device: DescribedDevice,
    call: Callable[[int], object] | None,
    form: Callable[..., _Form],
    legal: str,
    method: str = "target_properties",
) -> _Form:
    """Returns the result of ``method`` of ``device`` as ``form``; empty if it has no such method.

    Raises DeviceError for a result that is not ``legal``, and if the method raises an error that is not Landbridge's.
    """
    if call is None:
        return form()
    where = f"device {device.name}:{device.index}"
    try:
        found = call(device.index)
    except LandbridgeError:
        raise
    except Exception as error:  # whatever a plugin raises
        raise DeviceError(
            f"{where} failed in {method}(): {type(error).__name__}: {error}; its plugin is to raise an error of "
            "landbridge.errors that says what is wrong"
        ) from error
    try:
        described = form(() if isinstance(found, str) else found)
        legal_texts = all(isinstance(each, str) for each in described)
    except (TypeError, ValueError):
        legal_texts = False
    if isinstance(found, str) or not legal_texts:
        raise DeviceError(f"{where}: {method}() returned {found!r}; legal: {legal}")
    return described


def _kind_of(name: str) -> TargetKind:
    try:
        return registry.get_kind(name)
    except TargetError as error:
        known = tags.known_tags()
        close = did_you_mean(name, known)
        if name in registry.names() or (not close and did_you_mean(name, registry.names())):
            raise
        if alternative := instead_of(name):
            raise TargetError(f"{name!r} is not a target: {alternative}") from None
        legal = f"{close}; `landbridge targets` lists them" if close else f"; legal: {', '.join(known)}"
        raise TargetError(f"{error}. Nor is it a tag{legal}") from None


def _form(spec: str | Mapping[str, object] | Target) -> dict[str, object]:
    """Returns the dict form of any accepted description, with tags expanded; it always has a kind."""
    if isinstance(spec, Target):
        return spec.to_dict()
    if isinstance(spec, str):
        form = text.parse(spec)
    elif isinstance(spec, Mapping):
        form = {str(name): value for name, value in spec.items()}
    else:
        raise TargetError(f"a target is text, a dict or a Target, not {type(spec).__name__}: {spec!r}")
    if not isinstance(form.get("kind"), str):
        raise TargetError(
            f"target {spec!r} states no kind; legal: 'kind': one of {', '.join(registry.names())}, or a tag"
        )
    return tags.expand(form)


def _host(host: object, resolve: bool) -> Target | None:
    if host is None:
        return None
    if not resolve and isinstance(host, dict):
        return Target.from_json(text.format_json(host))
    return Target(host)  # type: ignore[arg-type]  # Target() itself rejects other types, saying so
