"""Named tuples and data classes that are made quickly: a small calculation imports some ninety of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import replace as replace
    from typing import NamedTuple as NamedTuple
else:
    import collections
    import functools

    class _Maker(type):
        def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any]) -> type:
            """Make a class of a body, as that of `typing` does, which compiles each annotation to check it."""
            if not bases:
                return super().__new__(cls, name, bases, members)
            types = members.pop("__annotations__", {})
            defaults = [members.pop(field) for field in types if field in members]
            made = collections.namedtuple(name, types, defaults=defaults, module=members.pop("__module__"))
            made.__annotations__ = made.__new__.__annotations__ = types
            for member, value in members.items():
                setattr(made, member, value)
            return made

    class NamedTuple(metaclass=_Maker):
        """As that of `typing`, without generic ones, and with nothing checked that mypy checks."""

    class field:  # noqa: N801
        """As that of `dataclasses`: a default, what makes one, or that it does not count in ==."""

        def __init__(self, *, compare: bool = True, **default: Any) -> None:
            self.compare, self.default = compare, default

    def dataclass(cls: Any = None, *, frozen: bool = False, eq: bool = True, repr: bool = True) -> Any:
        """As that of `dataclasses`, which compiles six methods of each class: here one, the others are shared.

        Annotations are all of fields.
        """
        if cls is None:
            return functools.partial(dataclass, frozen=frozen, eq=eq, repr=repr)
        compared = []
        for name in (own := vars(cls).get("__annotations__", ())):
            given = vars(cls).get(name)
            if isinstance(given, field):
                delattr(cls, name)
                if given.default:
                    setattr(cls, name, given.default.get("default", given))
            if not isinstance(given, field) or given.compare:
                compared.append(name)
        names = cls.__match_args__ = (*getattr(cls, "__match_args__", ()), *own)
        cls.__init__ = _make_init(cls, names)
        if repr:
            cls.__repr__ = _show
        if eq:
            cls._compared = (*getattr(cls, "_compared", ()), *compared)
            cls.__eq__, cls.__hash__ = _is_equal, _hash if frozen else None
        if frozen:
            cls.__setattr__ = cls.__delattr__ = _refuse
        return cls

    def _make_init(cls: type, names: tuple[str, ...]) -> Any:
        defaults = {f"_{name}": getattr(cls, name) for name in names if hasattr(cls, name)}
        taken = ", ".join(f"{name}=_{name}" if f"_{name}" in defaults else name for name in names)
        after = "; self.__post_init__()" if hasattr(cls, "__post_init__") else ""
        held = ", ".join(
            f"{name}={name} if {name} is not _{name} else _{name}.default['default_factory']()"
            if isinstance(defaults.get(f"_{name}"), field)
            else f"{name}={name}"
            for name in names
        )
        exec(f"def __init__(self, {taken}): self.__dict__.update({held}){after}", defaults)
        defaults["__init__"].__qualname__ = f"{cls.__qualname__}.__init__"
        return defaults["__init__"]

    def replace(one: Any, /, **changes: Any) -> Any:
        """Return the same with other values of some fields."""
        return type(one)(**{name: getattr(one, name) for name in one.__match_args__} | changes)

    def _show(self: Any) -> str:
        held = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
        return f"{type(self).__qualname__}({held})"

    def _list_compared(one: Any) -> tuple[Any, ...]:
        return tuple(getattr(one, name) for name in one._compared)

    def _is_equal(self: Any, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return _list_compared(self) == _list_compared(other)

    def _hash(self: Any) -> int:
        return hash(_list_compared(self))

    def _refuse(self: Any, name: str, *value: Any) -> None:
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot change {name} of a {type(self).__qualname__}")
