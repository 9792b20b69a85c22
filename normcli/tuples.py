"""`NamedTuple` as in `typing`, but with classes that are made faster: a small calculation imports eighty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    import collections

    class _Maker(type):
        """The metaclass that makes a named tuple of a class's annotated fields, with its methods."""

        def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any]) -> type:
            """Return the named tuple of a class body; `typing` would compile each annotation to check it."""
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
        """The base of named tuples, as in `typing`, but not generic and not checked, which mypy does."""
