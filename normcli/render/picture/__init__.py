"""Pictures of groups: a scene of shapes, and a writer for each kind of file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from normcli.render.picture.scene import Scene
    from normcli.result import Result
    from normcli.tensors.tensor import Tensor


def draw(results: Sequence[Result], tensor: Tensor) -> Scene:
    """Return the picture of results of one tensor, side by side."""
    raise NotImplementedError
