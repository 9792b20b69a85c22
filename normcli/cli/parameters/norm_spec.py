"""A norm with its own options in one word: `gn:groups=4`, `ln:axes=CHW`, `bn:eps=0:ddof=1`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from normcli.errors import UsageError, name_subject
from normcli.norms.options import OPTIONS
from normcli.norms.table import find_norm
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from normcli.norms.norm import Norm

_SHARED = "dtype"
"""The option that norms on one tensor have in common: behind the name of one of them it is refused."""


class NormSpec(NamedTuple):
    """A norm and the options that were written behind its name.

    Parameters
    ----------
    text : str
        As it was written.
    name : str
        The norm's name, alias or preset.
    norm : Norm
    own : mapping of str to value
        The options behind the name.
    open_options : frozenset of str
        Those that the norm has and the name does not fix.
    """

    text: str
    name: str
    norm: Norm
    own: Mapping[str, Any]
    open_options: frozenset[str]


def parse_norm_spec(text: str) -> NormSpec:
    """Parse `NAME:KEY=VALUE:KEY=VALUE`.

    Raises
    ------
    UsageError
        If there is no such norm, or it has no such option, or something is no KEY=VALUE.

    Examples
    --------
    >>> spec = parse_norm_spec("gn:groups=4:eps=0")
    >>> spec.norm.name, dict(spec.own)
    ('gn', {'groups': 4, 'eps': 0.0})
    """
    name, *parts = text.split(":")
    norm, fixed = find_norm(name)
    known = {
        option.name: option
        for option in OPTIONS
        # A framework's convention may bring an eps.
        if (option.belongs_to(norm) or option.name == "eps") and option.name not in (_SHARED, *fixed)
    }
    own: dict[str, Any] = {}
    for part in parts:
        key, equals, value = part.partition("=")
        option = key.strip().lower().replace("-", "_")
        if not equals or not value.strip() or not option:
            raise UsageError(f"{text}: {part!r} is no KEY=VALUE, such as {name}:axes=0")
        if option not in known:
            listed = ", ".join(other.word for other in known.values())
            raise UsageError(f"{text}: {name} has no option {key.strip()!r}; it has {listed}")
        if option in own:
            raise UsageError(f"{text} says {key.strip()} twice")
        with name_subject(text):
            own[option] = known[option].parse(value.strip())
    return NormSpec(
        text, name, norm, own, frozenset(name for name, row in known.items() if row.belongs_to(norm))
    )
