"""A question with what the steps of its search share: samples, one line, and cases of the default norms."""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import TYPE_CHECKING, Any

from normcli.checking.ulp import choose_counting_dtype
from normcli.engine.inputs import Inputs
from normcli.errors import NormError
from normcli.identifying.faults.fault_search import open_cases
from normcli.identifying.faults.thin_case import choose_case_eps, goes_with_x
from normcli.identifying.models.map_search import find_global_map, is_known
from normcli.identifying.sampling import MOST_SAMPLED
from normcli.identifying.search.affine_step import choose_usual, enumerate_affine_steps
from normcli.identifying.search.groups import find_orders, put_in_order
from normcli.identifying.search.match import Scope
from normcli.identifying.search.match_names import lay_out
from normcli.identifying.search.norm_search import Search
from normcli.identifying.search.samples import Samples
from normcli.norms.divisors import Measurement
from normcli.norms.layout import make_layout
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.rules import AxesRule
from normcli.norms.table import NORMS
from normcli.results.arguments import Problem
from normcli.tensors.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from normcli.identifying.faults.case import Case
    from normcli.identifying.models.line_fit import PlainMap
    from normcli.identifying.question import Question
    from normcli.tensors.residual import Addends


class Inquiry:
    """A question with the samples, cases and maps that steps of the search share, made when first needed.

    Parameters
    ----------
    question : Question
    norm : str or None
        The only norm to look for; None for all.

    Attributes
    ----------
    dtype : numpy.dtype
        The dtype to which y was rounded.
    orders : list of tuple of int
        The permutations that put y's axes in the order of those of x.
    sampled : int or None
        About how many values each hypothesis is compared with; None if all values are.

    Raises
    ------
    DataError
        If y has the shape of x in no order of axes.
    """

    def __init__(self, question: Question, norm: str | None = None) -> None:
        self.question, self.norm = question, norm
        self.x, self.y = question.x, question.y
        self.dtype: np.dtype[Any] = choose_counting_dtype(question.y.dtype)
        self.orders = find_orders(question.x.shape, question.y.shape)
        self.sampled = MOST_SAMPLED if question.x.size > MOST_SAMPLED else None

    @cached_property
    def cases(self) -> list[Case]:
        """Cases of the default norms: x and y with the exact result of each; empty if y has another shape."""
        x, _, gamma, beta, layout, *_ = self.question
        if x.shape != self.y.shape:
            return []
        subjects = list_subjects(x, gamma, beta, layout, self.norm, self.question.addends)
        opened = open_cases(subjects, self.y, self.dtype, most=_MOST_OF_EACH)
        likely = (case for case in opened if case.y.size <= _MOST_UNRELATED or goes_with_x(case))
        return [*map(choose_case_eps, likely)]

    @cached_property
    def channels(self) -> frozenset[int]:
        """The axes that may be the channel."""
        rank, layout = self.x.ndim, self.question.layout
        channel = None if layout is None else make_layout(layout, rank).channel
        return frozenset({min(1, rank - 1), rank - 1} if channel is None else {channel})

    @cached_property
    def samples(self) -> list[Samples]:
        """Samples of x and y, one for each order of y's axes."""
        x, _, gamma, beta, layout, start, *_ = self.question
        affines = list(enumerate_affine_steps(x.shape, gamma, beta))
        ways = [affines, *itertools.repeat(choose_usual(affines), len(self.orders) - 1)]
        scopes = (
            Scope(self.norm, self.channels, order, self.dtype, start, layout is not None)
            for order in self.orders
        )
        return [
            Samples(x, put_in_order(self.y, scope.order), steps, scope)
            for scope, steps in zip(scopes, ways, strict=True)
        ]

    @cached_property
    def search(self) -> Search:
        """The search in the first sample."""
        return Search(self.samples[0])

    @cached_property
    def line(self) -> PlainMap | None:
        """The map y = a · x + b with one a and b for all values; None without one."""
        return find_global_map(self.x, self.samples[0].y, self.dtype)

    @cached_property
    def has_simple_line(self) -> bool:
        """Whether `line` is simpler than any norm: a and b are round numbers, or those of a well-known map."""
        line = self.line
        return line is not None and (line.is_simple or is_known(line, self.x, self.samples[0].y, self.dtype))


_MOST_OF_EACH = 1 << 14
"""About how many values are searched for faults of each default norm; more if two groups have more."""

_MOST_UNRELATED = 1 << 16
"""For more values than this, a y that does not depend on x is not searched for rows in another order."""


def list_subjects(
    x: NDArray[Any], gamma: NDArray[Any] | None, beta: NDArray[Any] | None, layout: str | None,
    norm: str | None, addends: Addends | None = None, *, is_single: bool = False,
) -> Iterator[Problem]:  # fmt: skip
    """Yield each norm that divides by a variance or mean square and takes the given gamma and beta.

    Options have their defaults. Of norms that do the same to x, only the first is yielded.

    Parameters
    ----------
    x : ndarray
    gamma, beta : ndarray or None
    layout : str or None
        One letter for each axis; if None, the channel may be the second axis or the last.
    norm : str or None
        The only norm to yield; None for all.
    addends : Addends or None
        The two addends of x, if a residual was added.
    is_single : bool
        Whether norms of groups of one value are yielded, in place of all others.
    """
    seen = set()
    given = {name: values for name, values in (("gamma", gamma), ("beta", beta)) if values is not None}
    for request in _list_requests(x.shape, layout, norm, given):
        subject = pose_default(request, Tensor(x, "x", addends=addends), given)
        if subject is None:
            continue
        plan = subject.plan
        features = plan.parameters.full_shape if given else None
        key = (plan.grid.canonical, plan.norm.centre, plan.norm.divisor, features)
        if key not in seen and (plan.grid.group_size == 1) is is_single:
            seen.add(key)
            yield subject


def pose_default(request: Request, x: Tensor, given: Mapping[str, NDArray[Any]]) -> Problem | None:
    """Return a requested norm of x with the given ones of `gamma` and `beta`; None if they do not fit it."""
    try:
        plan = make_plan(request, x.values.shape, x.values.dtype).adopt_parameters(given)
        fitted = {name: plan.fit_parameter(name, values) for name, values in given.items()}
    except NormError:
        return None
    return Problem(plan, x, Inputs(fitted.get("gamma"), fitted.get("beta")))


def _list_requests(
    shape: tuple[int, ...], layout: str | None, norm: str | None, given: Mapping[str, NDArray[Any]]
) -> Iterator[Request]:
    """Yield requests for each norm that divides by a variance or mean square, with every layout to try.

    A norm of channel groups is requested with each number of groups that divides the channels. If gamma or beta
    has several axes, norms are also requested with each choice of axes of x that has their lengths.

    Parameters
    ----------
    shape : tuple of int
        The shape of x.
    layout : str or None
        One letter for each axis; if None, the channel may be the second axis or the last.
    norm : str or None
        The only norm to yield; None for all.
    given : mapping of str to ndarray
        The given ones of `gamma` and `beta`.
    """
    rank = len(shape)
    layouts = (None, lay_out(rank, rank - 1)) if layout is None and rank in _RANKS else (layout,)
    several = {values.shape for values in given.values() if values.ndim > 1}
    for row in NORMS.values():
        if row.divisor.measurement is not Measurement.MOMENTS or norm not in (None, row.name):
            continue
        for letters in layouts:
            request = Request(row.name, layout=letters)
            if row.axes is AxesRule.CHANNEL_GROUPS:
                place = rank - 1 if letters is not None and layout is None else min(1, rank - 1)
                counts = (n for n in range(2, shape[place]) if shape[place] % n == 0)
                yield from (request._replace(groups=n) for n in counts)
            else:
                yield request
        for lengths in several:
            for axes in itertools.combinations(range(rank), len(lengths)):
                if tuple(shape[axis] for axis in axes) == lengths:
                    yield Request(row.name, layout=layout, feature_axes=axes)


_RANKS = range(3, 13)
"""The ranks whose last axis may be the channel, where no layout says so."""
