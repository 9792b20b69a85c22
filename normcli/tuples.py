"""`NamedTuple` as in `typing`, but with classes that are made faster: a small calculation imports eighty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    import functools
    from collections import _tuplegetter  # the descriptor of a field of `namedtuple`
    from types import FunctionType

    @functools.cache
    def _compile_new(count: int) -> Any:
        """Return the code of `__new__` of tuples with `count` fields: compiling one for each class is slow."""
        names = "".join(f"_{place}, " for place in range(count))
        return compile(f"lambda _cls, {names}: _new(_cls, ({names}))", "tuples", "eval").co_consts[0]

    class _Tuple(tuple):
        """The methods that all tuples with named fields share, as those of `collections.namedtuple`."""

        __slots__ = ()

        @classmethod
        def _make(cls, values: Any) -> _Tuple:
            """Return a tuple of the values of all fields."""
            made = tuple.__new__(cls, values)
            if len(made) != len(cls._fields):
                raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
            return made

        def _replace(self, **changes: Any) -> _Tuple:
            """Return a tuple with other values for some fields."""
            made = self._make(map(changes.pop, self._fields, self))
            if changes:
                raise ValueError(f"Got unexpected field names: {list(changes)!r}")
            return made

        def _asdict(self) -> dict[str, Any]:
            """Return the values by field."""
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self) -> str:
            """Return the call that makes the tuple."""
            return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self._asdict().items())})"

        def __getnewargs__(self) -> tuple[Any, ...]:
            """Return the values, for `pickle`."""
            return tuple(self)

    class _Maker(type):
        """The metaclass that makes a named tuple of a class's annotated fields, with its methods."""

        def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any]) -> type:
            """Return the named tuple of a class body; `typing` would compile each annotation to check it."""
            if not bases:
                return super().__new__(cls, name, bases, members)
            types = members.setdefault("__annotations__", {})
            fields = tuple(types)
            defaults = {field: members.pop(field) for field in fields if field in members}
            code = _compile_new(len(fields)).replace(co_varnames=("_cls", *fields), co_qualname="__new__")
            new = FunctionType(code, {"_new": tuple.__new__}, "__new__", tuple(defaults.values()))
            new.__annotations__ = types
            getters = {field: _tuplegetter(place, None) for place, field in enumerate(fields)}
            known = {"__new__": new, "_fields": fields, "_field_defaults": defaults, "__match_args__": fields}
            return type(name, (_Tuple,), {"__slots__": (), **known, **getters, **members})

    class NamedTuple(metaclass=_Maker):
        """The base of named tuples, as in `typing`, but not generic and not checked, which mypy does."""
