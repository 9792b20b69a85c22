"""How gamma and beta may have entered: as they should, exchanged, as 1 + gamma, one of them, or not at all."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from normcli.dtypes import Floats


ESTIMATED = "estimated"
"""The way of a gamma and a beta that nobody gave."""

WAYS: Mapping[str, str] = MappingProxyType(
    {
        "none": "",
        "gamma, beta": ", then gamma and beta",
        "gamma": ", then gamma",
        "beta": ", then beta",
        "1 + gamma, beta": ", then 1 + gamma and beta",
        "1 + gamma": ", then 1 + gamma",
        "swapped": ", with gamma and beta exchanged",
        ESTIMATED: ", then a gamma and a beta that were fitted to the values",
    }
)
"""Every way and its words in a sentence, the likelier ones first."""


class AffineStep(NamedTuple):
    """One way of the affine step y = scale · x̂ + shift.

    Parameters
    ----------
    way : str
        One of `WAYS`.
    scale, shift : ndarray or None
        Of the tensor's rank, with lengths of 1 where they repeat; None stands for 1 and 0.
    """

    way: str
    scale: Floats | None = None
    shift: Floats | None = None

    def map(self, function: Callable[[Floats], Floats]) -> AffineStep:
        """Return the step with a function applied to its scale and its shift, as far as it has them."""
        scale, shift = (None if values is None else function(values) for values in (self.scale, self.shift))
        return self._replace(scale=scale, shift=shift)

    def apply(self, standardized: Floats) -> Floats:
        """Return y."""
        scaled = standardized if self.scale is None else standardized * self.scale
        return scaled if self.shift is None else scaled + self.shift

    def undo(self, values: Floats, slack: Floats) -> tuple[Floats, Floats]:
        """Return x̂ and how far it may be off, given y and how far y may be off.

        Where the scale is 0, y says nothing of x̂: the slack is infinite there.
        """
        if self.shift is not None:
            values = values - self.shift
        if self.scale is None:
            return values, slack
        with np.errstate(all="ignore"):
            blind = self.scale == 0.0
            wrong = blind & (np.abs(values) > slack)  # a value that no x̂ gives
            restored = np.where(blind, 0.0, values / self.scale)
            allowed = np.where(blind, np.inf, slack / np.abs(self.scale))
        return np.where(wrong, np.nan, restored), allowed


NO_AFFINE = AffineStep("none")


def enumerate_affine_steps(
    shape: tuple[int, ...], gamma: NDArray[Any] | None, beta: NDArray[Any] | None
) -> Iterator[AffineStep]:
    """Yield the ways in which given parameters may have entered, the right one first.

    Raises
    ------
    DataError
        If a parameter's shape fits no axes of the tensor.
    """
    gammas, betas = (_place(name, p, shape) for name, p in (("gamma", gamma), ("beta", beta)))
    both = [(g, b) for g in gammas for b in betas if g.shape == b.shape or 1 in (g.size, b.size)]
    for g, b in both:
        yield AffineStep("gamma, beta", g, b)
    for g in gammas:
        yield AffineStep("gamma", g)
    for b in betas:
        yield AffineStep("beta", None, b)
    for g, b in both:
        yield AffineStep("1 + gamma, beta", 1.0 + g, b)
        yield AffineStep("swapped", b, g)
    for g in gammas:
        yield AffineStep("1 + gamma", 1.0 + g)
    yield NO_AFFINE


def _place(name: str, parameter: NDArray[Any] | None, shape: tuple[int, ...]) -> list[Floats]:
    """Return a parameter in the tensor's rank, along each run of axes that has its shape."""
    if parameter is None:
        return []
    values = np.asarray(parameter, dtype=np.float64)
    lengths = values.shape if values.size > 1 else ()
    if len(lengths) == len(shape) and all(n in (1, full) for n, full in zip(lengths, shape, strict=True)):
        return [values]
    if not lengths:
        return [values.reshape((1,) * len(shape))]
    last = len(shape) - len(lengths)
    starts = [start for start in range(last, -1, -1) if shape[start : start + len(lengths)] == lengths]
    if not starts:
        raise DataError(f"{name} has the shape {values.shape}, which no axes of {shape} have")
    return [values.reshape((*(1,) * start, *lengths, *(1,) * (last - start))) for start in starts]
