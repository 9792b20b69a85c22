"""A scene as SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from normcli.render.picture.scene import Scene


def write(scene: Scene, stream: BinaryIO) -> None:
    """Write a scene."""
    raise NotImplementedError
