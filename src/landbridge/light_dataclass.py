"""``dataclass`` as the standard library's, made in a fraction of its time: importing us makes a hundred of them.

Until Python 3.13 the standard library compiles each method of each class. Here methods are closures over the names of
fields, and ``__init__`` is compiled when the first instance is made.
"""

# ruff: noqa: N807 - functions here are methods of other classes
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    import dataclasses
    import inspect
    from operator import attrgetter
    from reprlib import recursive_repr

    _set, _delete = object.__setattr__, object.__delattr__

    def dataclass(cls=None, /, *, init=True, repr=True, eq=True, frozen=False, slots=False, kw_only=False):
        """As ``dataclasses.dataclass``, of fields that are no ``InitVar``."""
        options = {"init": init, "repr": repr, "eq": eq, "frozen": frozen}
        if cls is None:
            return lambda cls: dataclass(cls, **options, slots=slots, kw_only=kw_only)
        own = vars(cls).keys()
        has_hash = "__hash__" in own and (vars(cls)["__hash__"] is not None or "__eq__" not in own)
        cls.__doc__ = cls.__doc__ or cls.__name__  # else the signature is asked for
        inherits = any(vars(base).get("__dataclass_params__") for base in cls.__mro__)
        cls = dataclasses.dataclass(
            cls, init=False, repr=False, eq=False, frozen=frozen and inherits, slots=slots, kw_only=kw_only
        )
        for name, value in options.items():
            setattr(cls.__dataclass_params__, name, value)
        fields = dataclasses.fields(cls)
        if init and "__init__" not in own:
            cls.__init__, cls.__signature__ = _first_init(cls, fields), _Signature()
        if repr and "__repr__" not in own:
            cls.__repr__ = _repr(tuple(f.name for f in fields if f.repr))
        if eq:
            if "__eq__" not in own:
                cls.__eq__ = _eq(_values(f.name for f in fields if f.compare))
            if not has_hash:
                hashed = (f.name for f in fields if (f.compare if f.hash is None else f.hash))
                cls.__hash__ = _hash(_values(hashed)) if frozen else None
        if frozen and not inherits:
            cls.__setattr__, cls.__delattr__ = _frozen(cls, frozenset(f.name for f in fields))
            if slots and "__getstate__" not in own:
                cls.__getstate__, cls.__setstate__ = _states(tuple(f.name for f in fields))
        return cls

    def _values(names):
        """A function that gives the values of the fields ``names`` as a tuple."""
        names = tuple(names)
        if len(names) > 1:
            return attrgetter(*names)
        return (lambda each: (getattr(each, names[0]),)) if names else lambda each: ()

    def _repr(names):
        @recursive_repr()
        def __repr__(self):
            fields = ", ".join([f"{name}={getattr(self, name)!r}" for name in names])
            return f"{type(self).__qualname__}({fields})"

        return __repr__

    def _eq(values):
        def __eq__(self, other):
            return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

        return __eq__

    def _hash(values):
        def __hash__(self):
            return hash(values(self))

        return __hash__

    def _frozen(cls, names):
        def refuse(self, name, what):
            if type(self) is cls or name in names:
                raise dataclasses.FrozenInstanceError(f"cannot {what} field {name!r}")

        def __setattr__(self, name, value):
            refuse(self, name, "assign to")
            super(cls, self).__setattr__(name, value)

        def __delattr__(self, name):
            refuse(self, name, "delete")
            super(cls, self).__delattr__(name)

        return __setattr__, __delattr__

    def _states(names):
        """What pickling reads and sets of a class with slots, which is frozen."""

        def __getstate__(self):
            return [getattr(self, name) for name in names]

        def __setstate__(self, state):
            for name, value in zip(names, state, strict=True):
                _set(self, name, value)

        return __getstate__, __setstate__

    def _first_init(cls, fields):
        """An ``__init__`` that puts the compiled one into its place, and calls it."""

        def __init__(self, /, *args, **kwargs):
            _complete(cls, fields)
            cls.__init__(self, *args, **kwargs)

        return __init__

    def _complete(cls, fields):
        names = {"_set": _set, "_factory": _factory}
        for f in fields:
            if f.default is not dataclasses.MISSING:
                names[f"_default_{f.name}"] = f.default
            elif f.default_factory is not dataclasses.MISSING:
                names[f"_make_{f.name}"] = f.default_factory
        parameters = [_parameter(f, names) for f in fields if f.init and not f.kw_only]
        by_name = [_parameter(f, names) for f in fields if f.init and f.kw_only]
        if by_name:
            parameters += ["*", *by_name]
        set_field = "_set(self, {0!r}, {1})" if cls.__dataclass_params__.frozen else "self.{0} = {1}"
        slots = "__slots__" in vars(cls)
        lines = [set_field.format(f.name, value) for f in fields if (value := _value(f, names, slots))]
        if hasattr(cls, "__post_init__"):
            lines.append("self.__post_init__()")
        body = "\n  ".join(lines or ["pass"])
        head = f"def make({', '.join(names)}):\n def __init__({', '.join(['self', *parameters])}):"
        made = {}
        exec(f"{head}\n  {body}\n return __init__", {"__name__": cls.__module__}, made)
        init = made["make"](**names)
        init.__qualname__ = f"{cls.__qualname__}.__init__"
        init.__annotations__ = {f.name: f.type for f in fields if f.init} | {"return": None}
        cls.__init__ = init
        if "__signature__" in vars(cls):
            del cls.__signature__

    def _parameter(f, names):
        if f"_default_{f.name}" in names:
            return f"{f.name}=_default_{f.name}"
        return f"{f.name}=_factory" if f"_make_{f.name}" in names else f.name

    def _value(f, names, slots):
        """What the field is set to; none where it stays the default of the class."""
        if f"_make_{f.name}" in names:
            return f"_make_{f.name}() if {f.name} is _factory else {f.name}" if f.init else f"_make_{f.name}()"
        if f.init:
            return f.name
        return f"_default_{f.name}" if slots and f"_default_{f.name}" in names else ""

    class _Factory:
        def __repr__(self):
            return "<factory>"

    _factory = _Factory()

    class _Signature:
        """``__signature__`` until there is ``__init__``, whose it is."""

        def __get__(self, instance, owner):
            for cls in owner.__mro__:
                if isinstance(vars(cls).get("__signature__"), _Signature):
                    _complete(cls, dataclasses.fields(cls))
            return inspect.signature(owner)
