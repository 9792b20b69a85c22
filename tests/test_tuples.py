"""Named tuples and data classes that are made quickly are those of `typing` and `dataclasses`."""

from __future__ import annotations

import dataclasses
import functools
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
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        Quick()
    with pytest.raises(AttributeError):
        point.x = 1


def make_pair(of):
    @of.dataclass(frozen=True)
    class Box:
        """A box."""

        size: int
        name: str = of.field(default="b", compare=False)

        @functools.cached_property
        def double(self) -> int:
            return 2 * self.size

    @of.dataclass(frozen=True, eq=False)
    class Lid(Box):
        colour: str = "red"

    return Box, Lid


@tuples.dataclass(eq=False, repr=False)
class Changing:
    x: int
    y: int = 3
    names: list[str] = tuples.field(default_factory=list)

    def __post_init__(self) -> None:
        self.total = self.x + self.y


@pytest.mark.parametrize("of", [tuples, dataclasses], ids=["ours", "those of Python"])
def test_data_classes_are_as_those_of_dataclasses(of):
    box, lid = make_pair(of)
    one = box(2)
    assert repr(one).endswith("Box(size=2, name='b')")
    assert (one.double, box.__doc__, box.__match_args__) == (4, "A box.", ("size", "name"))
    assert one == box(size=2, name="other")
    assert one != box(3)
    assert one != lid(2)
    assert hash(one) == hash(box(2, "other"))
    changed = of.replace(one, size=5)
    assert (changed.size, changed.name, changed.double) == (5, "b", 10)
    assert vars(lid(1)) == {"size": 1, "name": "b", "colour": "red"}
    for change in (lambda: setattr(one, "size", 1), lambda: delattr(one, "size")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            change()
    with pytest.raises(TypeError, match=r"__init__\(\) missing 1 required positional argument: 'size'"):
        box()
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        box(1, colour="red")


def test_data_classes_that_change_are_equal_to_themselves_alone_and_can_be_pickled():
    one = Changing(1)
    one.y = 9
    one.names.append("z")
    assert (one.y, one.total, one.names) == (9, 4, ["z"])
    assert (Changing(1).names, Changing(1, names=["a"]).names) == ([], ["a"])
    assert one != Changing(1, 9)
    assert vars(pickle.loads(pickle.dumps(one))) == vars(one)
