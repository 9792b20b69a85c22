"""The colours of groups: told apart by people with any colour vision, on light and dark backgrounds."""

from __future__ import annotations

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


def choose_colour(group: int) -> tuple[str, str]:
    """Return the background and the text colour of a group; one number on, it is another."""
    return PALETTE[group % len(PALETTE)]
