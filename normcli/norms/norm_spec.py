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
"""The option that all norms on one tensor share: it is refused behind the name of a single norm."""


_EVALUATION = "eval"
"""The word behind a norm that is to normalize with running statistics: `bn:eval`."""


class NormSpec(NamedTuple):
    """A norm and the options that were written behind its name.

    Parameters
    ----------
    text : str
        The whole word, as it was written.
    name : str
        The norm's name, alias or preset.
    norm : Norm
    own : mapping of str to value
        The options written behind the name, and their values.
    open_options : frozenset of str
        The names of the options of the norm, those in `own` included, but for `dtype` and for what a preset
        such as `l1` fixes.
    evaluates : bool
        Whether the norm is to normalize with running statistics: `bn:eval`.
    """

    text: str
    name: str
    norm: Norm
    own: Mapping[str, Any]
    open_options: frozenset[str]
    evaluates: bool = False


def parse_norm_spec(text: str) -> NormSpec:
    """Parse `NAME:KEY=VALUE:KEY=VALUE`, and `NAME:eval` for norms that keep running statistics.

    Raises
    ------
    UsageError
        If the norm or an option is unknown, a part is no KEY=VALUE, a value is of the wrong kind, or an option
        stands there twice.

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
