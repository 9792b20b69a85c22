"""What a picture shows, before any writer decides how."""

from __future__ import annotations

from typing import NamedTuple


class Scene(NamedTuple):
    """A picture.

    Parameters
    ----------
    width, height : float
        In the unit of SVG, of which 96 make an inch.
    title, description : str
        What it shows, for those who do not see it.
    """

    width: float
    height: float
    title: str
    description: str
