"""The colours of groups: told apart by people with any colour vision, on light and dark backgrounds."""

from __future__ import annotations

from normcli.tuples import NamedTuple

PALETTE = (
    ("#56b4e9", "#000000"),
    ("#e69f00", "#000000"),
    ("#009e73", "#000000"),
    ("#f0e442", "#000000"),
    ("#cc79a7", "#000000"),
    ("#0072b2", "#ffffff"),
    ("#d55e00", "#000000"),
    ("#b3b3b3", "#000000"),
)
"""(background, text): Okabe & Ito 2008 (https://jfly.uni-koeln.de/color/), with grey for its black."""

PALETTE_OF_16 = (
    ("cyan", "black"),
    ("yellow", "black"),
    ("green", "black"),
    ("bright_white", "black"),
    ("magenta", "black"),
    ("blue", "bright_white"),
    ("red", "bright_white"),
    ("bright_black", "bright_white"),
)
"""(background, text) for terminals with 16 colours; the nearest ones to `PALETTE` would not all differ."""

HATCHES = ("plain", "rising", "level", "dots", "falling", "upright", "grid", "rings")
"""The patterns on the colours: none for the first eight groups, one for each further eight."""

_GROUND, _LINES = 0.62, 0.22
"""The share of white in a hatched colour's ground and lines: black text is readable on both."""


class Look(NamedTuple):
    """The fill of a group: a colour, or a hatched one.

    Parameters
    ----------
    ground : str
        The background, as `#rrggbb`.
    text : str
        The colour of text on it.
    hatch : str
        One of `HATCHES`.
    lines : str
        The colour of the hatching; the ground's where it is plain.
    """

    ground: str
    text: str
    hatch: str
    lines: str


def choose_look(number: int) -> Look:
    """Return the look of the group that is number `number`, from 0, in a picture; 64 looks are different.

    Examples
    --------
    >>> choose_look(0)
    Look(ground='#56b4e9', text='#000000', hatch='plain', lines='#56b4e9')
    >>> choose_look(8)
    Look(ground='#bfe2f7', text='#000000', hatch='rising', lines='#7bc4ee')
    """
    colour, text = PALETTE[number % len(PALETTE)]
    hatch = HATCHES[number // len(PALETTE) % len(HATCHES)]
    if hatch == HATCHES[0]:
        return Look(colour, text, hatch, colour)
    return Look(_lighten(colour, _GROUND), "#000000", hatch, _lighten(colour, _LINES))


def _lighten(colour: str, part: float) -> str:
    channels = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(channel + (255 - channel) * part):02x}" for channel in channels)
