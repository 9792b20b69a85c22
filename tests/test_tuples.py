"""Named tuples that are made quickly are those of `typing`."""

from __future__ import annotations

import pickle
import typing

import pytest

from normcli import tuples


class Quick(tuples.NamedTuple):
    """A point."""

    x: int
    y: tuple[float, ...] = ()

    @classmethod
    def origin(cls) -> Quick:
        return cls(0)

    @property
    def double(self) -> int:
        return 2 * self.x

    def __add__(self, other: object) -> Quick:
        return self._replace(x=9)


class Plain(typing.NamedTuple):
    """A point."""

    x: int
    y: tuple[float, ...] = ()


@pytest.mark.parametrize("name", ["_fields", "_field_defaults", "__match_args__", "__doc__", "__module__"])
def test_classes_have_what_those_of_typing_have(name):
    assert getattr(Quick, name) == getattr(Plain, name)


def test_annotations_are_kept_and_can_be_looked_up():
    assert typing.get_type_hints(Quick) == typing.get_type_hints(Plain) == {"x": int, "y": tuple[float, ...]}


def test_tuples_have_fields_defaults_and_methods():
    point = Quick(x=3)
    assert (point, point.x, point.y, repr(point)) == ((3, ()), 3, (), "Quick(x=3, y=())")
    assert (Quick.origin(), point.double, point + point) == ((0, ()), 6, (9, ()))
    assert pickle.loads(pickle.dumps(point)) == point
    assert Quick._make([1, (2.0,)]) == (1, (2.0,))
    assert point._asdict() == {"x": 3, "y": ()}
    with pytest.raises(TypeError, match="Expected 2 arguments, got 1"):
        Quick._make([1])
    with pytest.raises(ValueError, match="unexpected field names: \\['z'\\]"):
        point._replace(z=1)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        Quick()
    with pytest.raises(AttributeError):
        point.x = 1
