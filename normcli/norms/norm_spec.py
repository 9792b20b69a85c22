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


_EVALUATION = "eval"
"""What stands behind a norm that takes running statistics."""


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
    evaluates : bool
        Whether the norm takes running statistics: `bn:eval`.
    """

    text: str
    name: str
    norm: Norm
    own: Mapping[str, Any]
    open_options: frozenset[str]
    evaluates: bool = False


def parse_norm_spec(text: str) -> NormSpec:
    """Parse `NAME:KEY=VALUE:KEY=VALUE`, and `NAME:eval` of norms that keep running statistics.

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
    evaluates = norm.tracks and _EVALUATION in parts
    for part in parts:
        if evaluates and part == _EVALUATION:
            continue
        key, equals, value = part.partition("=")
        option = key.strip().lower().replace("-", "_")
        if not equals or not value.strip() or not option:
            raise UsageError(f"{text}: {part!r} is no KEY=VALUE, such as {name}:axes=0")
        if option not in known:
            words = [other.word for other in known.values()]
            listed = ", ".join([*words, _EVALUATION] if norm.tracks else words)
            raise UsageError(f"{text}: {name} has no option {key.strip()!r}; it has {listed}")
        if option in own:
            raise UsageError(f"{text} says {key.strip()} twice")
        with name_subject(text):
            own[option] = known[option].parse(value.strip())
    return NormSpec(
        text, name, norm, own, frozenset(name for name, row in known.items() if row.belongs_to(norm)), evaluates
    )
