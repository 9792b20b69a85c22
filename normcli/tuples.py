"""Named tuples whose classes are made quickly: a small calculation imports some eighty of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    import collections

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
