"""The inputs on which kernels fail: each is a tensor, its parameters, and a gradient that hides nothing."""

from __future__ import annotations

import functools
import math
import operator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from normcli.dtypes import find_type, get_eps, get_largest, get_smallest
from normcli.errors import NormError, UsageError
from normcli.identifying.sampling import put_back
from normcli.norms.options import find_option
from normcli.norms.plan import make_plan
from normcli.norms.request import Choices, Request
from normcli.norms.table import find_norm
from normcli.results.arguments import read_dtype
from normcli.results.normalize import normalize, require_options
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import DTypeLike, NDArray

    from normcli.dtypes import Floats
    from normcli.norms.plan import Plan
    from normcli.norms.rules import NormName

    Shape = tuple[int, ...]

_GROUP_SIZES = (1, 2, 3, 7, 8, 9, 31, 32, 33, 127, 128, 129, 1023, 1024, 1025)
"""The sizes of groups: around the powers of two that blocks, warps and pairwise sums are made of."""

_USUAL_SIZE = 96
"""The size of groups in cases about values, no power of two."""

_USUAL_GROUPS = 8
"""The number of groups in cases about values; with fewer, the fault of a kernel may stay open."""

_RANKS = ((7,), (3, 4), (2, 4, 6), (2, 4, 3, 6), (2, 4, 3, 2, 6))

_EMPTY = ((0, 4), (3, 0), (0, 4, 5), (3, 4, 0))

_LARGEST_HALF = get_largest("float16")


@dataclass(frozen=True, eq=False, repr=False)
class Provocation:
    """One input on which kernels fail, with parameters, a gradient, and options for `assert_matches`.

    Parameters
    ----------
    name : str
        The property of the input, for the id of a test: `parametrize("case", provocations(…), ids=str)`.
    x : ndarray
        The tensor.
    dy : ndarray
        The derivative of a loss with respect to the normalized tensor, of the shape and dtype of `x`. The means
        of dy · gamma and dy · gamma · x̂ are as large as their values, and no two rows are equal.
    gamma, beta : ndarray or None
        The parameters, of the norm's own shape and the dtype of `x`, some of gamma negative; None if the
        norm has none.
    options : mapping of str to object
        The options for `assert_matches`: gamma, beta, and the options that `provocations` was given.
    """

    name: str
    x: NDArray[Any]
    dy: NDArray[Any]
    gamma: NDArray[Any] | None = None
    beta: NDArray[Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<Provocation: {self.name}, {self.x.shape}, {self.x.dtype.name}>"


def provocations(
    norm: str = "bn", dtype: DTypeLike = "float32", *, seed: int = 0, **options: Any
) -> list[Provocation]:
    """Return the inputs on which kernels of a norm fail.

    The inputs are groups of 1, 2 and 3 values, and of 2ⁿ − 1, 2ⁿ and 2ⁿ + 1; a mean far above the spread, up to
    the limit of the dtype; constant groups; one value far out; subnormal values, and values with subnormal
    squares; values whose squares exceed the largest float16, or the largest of the dtype; groups unlike each
    other; tensors of 1 to 5 axes, not contiguous, and without values.

    Parameters
    ----------
    norm : str
        A name of the table `normcli.NORMS`, or an alias of one.
    dtype : {"float16", "bfloat16", "float32", "float64"} or dtype
        The dtype of all arrays.
    seed : int
        The seed of the values, 0 or more.
    **options
        Options of `normcli.normalize`: `axes`, `groups`, `layout`, `like` …. Shapes that do not fit the options
        are left out. A norm that needs `groups` has 2 by default. An array, such as gamma, has to fit every
        shape that is left.

    Returns
    -------
    list of Provocation

    Raises
    ------
    UsageError
        If there is no such norm, dtype, seed or option, if the options contradict each other, or if no shape
        fits.
    DataError
        If gamma, beta, a mask or running statistics are given that do not fit a shape.

    Notes
    -----
    A kernel under test has to apply the gamma and the beta of a case, if these are not None (`rms` has a beta
    too); `options` has both for `assert_matches`.

    With `accumulate="float32"` some cases fail for every kernel, with the words "promises nothing": for
    bfloat16 and float32 the edge of the dtype, where sums of squares are beyond float32; for float32 also the
    mean 4.1943e+06 times the spread, which leaves sums in float32 no digit of the spread. Leave these out, as
    below, or, for a kernel that is right there too, give `accumulate="float64"` or `max_ulp`.

    Examples
    --------
    A kernel in NumPy that adds in float32, and its test:

    >>> def layer_norm(x, gamma, beta):
    ...     wide = x.astype("float32")
    ...     w = wide - wide.mean(-1, keepdims=True)
    ...     y = w / np.sqrt((w * w).mean(-1, keepdims=True) + np.float32(1e-5))
    ...     return (y * gamma.astype("float32") + beta.astype("float32")).astype(x.dtype)
    >>> from normcli.testing import assert_matches
    >>> for case in provocations("ln", "bfloat16"):
    ...     if case.x.size and not case.name.startswith("edge"):
    ...         y = layer_norm(case.x, case.gamma, case.beta)
    ...         assert_matches(y, case.x, "ln", accumulate="float32", **case.options)

    Exact results are rounded once, so their errors are at most half an ulp:

    >>> cases = provocations("ln", "float16")
    >>> len(cases), cases[4]
    (38, <Provocation: group size 8, (3, 8), float16>)
    >>> for case in cases:
    ...     y = normalize(case.x, "ln", **case.options).normalized
    ...     assert_matches(y, case.x, "ln", max_ulp=0.501, **case.options)
    """
    row = find_norm(norm)[0]
    require_options("provocations", options, but=("out",))
    if row.needs_groups:
        options = {"groups": 2, **options}
    maker = _CaseMaker(norm, _read_dtype(dtype), options, _read_stream(seed))
    cases = list(maker.make_all())
    if not cases:
        maker.refuse()
    return cases


def _read_dtype(given: DTypeLike) -> np.dtype[Any]:
    """Return a dtype by any of its names; raise `UsageError` unless results can have it."""
    name = read_dtype("dtype", given)
    find_option("dtype").check(name)
    dtype: np.dtype[Any] = np.dtype(find_type(str(name)))
    return dtype


def _read_stream(seed: int) -> np.random.Generator:
    """Return the random generator for a seed; raise `UsageError` unless it is an integer of at least 0."""
    try:
        number = operator.index(seed)
    except TypeError as error:
        raise UsageError(f"seed {seed!r} is not an integer") from error
    if number < 0:
        raise UsageError(f"seed {seed} is less than 0")
    return np.random.default_rng(number)


class _Values(NamedTuple):
    """A kind of values: its name, and a function that takes standard normal rows and returns the values."""

    name: str
    make: Callable[[Floats], Floats]


class _CaseMaker:
    """A maker of the cases for one norm, with options, in one dtype.

    Parameters
    ----------
    norm : str
    dtype : dtype
        The dtype of all arrays.
    options : mapping of str to object
        The options of `normalize`.
    rng : numpy.random.Generator
        Draws the values.
    """

    def __init__(
        self, norm: str, dtype: np.dtype[Any], options: Mapping[str, Any], rng: np.random.Generator
    ) -> None:
        self._norm, self._dtype, self._options, self._rng = norm, dtype, options, rng
        self._request = Request.collect(norm, options)
        Choices(self._request)  # refuses options that contradict each other or the norm, for every shape

    def refuse(self) -> NoReturn:
        """Raise `UsageError`, as the norm with these options takes none of the shapes that cases are made of.

        The message has the reason for one of these shapes, of four axes: the norm must refuse it.
        """
        shape = _RANKS[3]
        try:
            self.plan(shape)
        except NormError as error:
            raise UsageError(f"{self._norm}: no shape fits these options; of {shape}: {error}") from error
        raise AssertionError("a shape fits, but there is no case of it")

    def plan(self, shape: Shape) -> Plan:
        """Return the plan of a shape; raise `NormError` if the norm with these options refuses the shape."""
        return make_plan(self._request, shape, self._dtype)

    def make_all(self) -> Iterator[Provocation]:
        """Yield every case whose shape fits the norm and its options."""
        for size in _GROUP_SIZES:
            yield from self._make(f"group size {size}", self._find_shape(size))
        usual = self._find_shape(_USUAL_SIZE, _USUAL_GROUPS)
        for kind in self._list_values():
            yield from self._make(kind.name, usual, kind.make)
        for shape in _RANKS:
            yield from self._make(f"rank {len(shape)}", shape)
        yield from self._make("transposed", usual, arrange=lambda x: np.asfortranarray(x))
        yield from self._make("every other value", usual, arrange=_spread_out)
        for shape in _EMPTY:
            yield from self._make(f"no values, shape {'×'.join(map(str, shape))}", shape)

    def _list_values(self) -> Iterator[_Values]:
        """Yield kinds of values, each with a function of standard normal values of shape (groups, size)."""
        name = self._dtype.name
        digits = 1 - int(math.log2(get_eps(self._dtype)))
        smallest, largest = get_smallest(name), get_largest(name)
        half = 2.0 ** ((digits + 1) // 2)
        for far in (half / 4.0, half, 2.0 ** (digits - 2)):
            yield _Values(f"mean {far:g} times the spread", functools.partial(np.add, far))
        yield _Values("constant groups", lambda z: np.broadcast_to(_ramp(z) / 10.0, z.shape))
        yield _Values("one constant group", lambda z: np.where(_ramp(z) == 1.0, 0.1, z))
        yield _Values("all zeros", np.zeros_like)
        yield _Values("one value far out", lambda z: z + half**2 / 8.0 * (np.arange(z.shape[1]) == 1))
        yield _Values("groups unlike each other", lambda z: (z + 1.0) * 4.0 ** -_ramp(z))
        yield _Values("subnormals", lambda z: z * smallest * 8.0)
        yield _Values("squares that are subnormal", lambda z: z * math.sqrt(smallest) * 2.0)
        yield _Values("squares beyond float16", lambda z: (z + 4.0) * math.sqrt(_LARGEST_HALF) / 2.0)
        yield _Values(f"edge of {name}", lambda z: np.clip(z / 2.0, -1.0, 1.0) * largest)

    def _find_shape(self, size: int, groups: int = 3) -> Shape:
        """Return a shape for which the norm has groups of `size` values, at least `groups` of them if possible.

        If no shape gives groups of this size, another shape is returned that the options allow; (3, size) if
        they allow none of those tried.
        """
        fitting = []
        channels = max(2, self._request.groups or 2)  # one for each group
        paired = (max(2, -(-groups // channels)), channels, size)
        for shape in ((groups, size), (size, groups), paired, (2, groups, size), (2, size, groups), (size,)):
            try:
                grid = self.plan(shape).grid
            except NormError:
                continue
            fitting.append((grid.group_size == size, grid.group_count > 1, shape))
        return max(fitting, key=lambda found: found[:2])[2] if fitting else (3, size)

    def _make(
        self,
        name: str,
        shape: Shape,
        make: Callable[[Floats], Floats] = lambda z: z + 2.0,
        arrange: Callable[[NDArray[Any]], NDArray[Any]] = lambda x: x,
    ) -> Iterator[Provocation]:
        """Yield a case for a shape; nothing if the shape does not fit the norm and its options.

        Parameters
        ----------
        name : str
            The name of the case.
        shape : tuple of int
        make : callable
            Takes standard normal values, a row for each group, and returns the values of x.
        arrange : callable
            Takes x or dy, and returns it with another order in memory.
        """
        try:
            plan = self.plan(shape)
        except NormError:
            return
        x = arrange(self._draw(plan, make))
        drawn = {name: self._draw_parameter(name, plan) for name in plan.norm.parameter_names}
        dy = arrange(self._draw_gradient(plan, x, drawn.get("gamma")))
        yield Provocation(name, x, dy, drawn.get("gamma"), drawn.get("beta"), {**drawn, **self._options})

    def _draw(self, plan: Plan, make: Callable[[Floats], Floats]) -> NDArray[Any]:
        """Return a tensor of a plan's shape: `make` takes standard normal values, a row for each group."""
        grid = plan.grid
        if grid.reach is not None or not math.prod(grid.shape):
            flat: Floats = make(self._rng.normal(size=(1, max(2, math.prod(grid.shape)))))[0]
            return flat[: math.prod(grid.shape)].reshape(grid.shape).astype(self._dtype)
        values = make(self._rng.normal(size=(grid.group_count, grid.group_size)))
        return np.ascontiguousarray(put_back(grid, values)).astype(self._dtype)

    def _draw_parameter(self, name: str, plan: Plan) -> NDArray[Any]:
        """Return a gamma whose factors are 0.5 to 2 in size, of either sign, or a standard normal beta."""
        shape = plan.parameters.shape
        if name != "gamma":
            return np.asarray(self._rng.normal(size=shape)).astype(self._dtype)
        sign = self._rng.choice([-1.0, 1.0, 1.0], size=shape)
        factor: NDArray[Any] = sign * self._rng.uniform(0.5, 2.0, size=shape)
        return np.asarray(factor - plan.spec.gamma_offset).astype(self._dtype)

    def _draw_gradient(self, plan: Plan, x: NDArray[Any], gamma: NDArray[Any] | None) -> NDArray[Any]:
        """Return a random dy such that the means of dy · gamma and dy · gamma · x̂ are not near 0."""
        norm = cast("NormName", self._norm)
        xhat = normalize(x, norm, **self._options, dtype="float64").normalized
        along = np.clip(np.nan_to_num(xhat, posinf=0.0, neginf=0.0), -4.0, 4.0)
        dy = (self._rng.normal(size=x.shape) + 1.0 + along).reshape(plan.grid.view_shape)
        if gamma is not None:
            scale = gamma.astype(np.float64) + plan.spec.gamma_offset
            dy = dy / scale.reshape(plan.parameters.view_shape)
        drawn: NDArray[Any] = dy.reshape(x.shape).astype(self._dtype)
        return drawn


def _ramp(z: Floats) -> Floats:
    """Return the numbers of the rows of z, from 1, as a column."""
    return np.arange(1.0, z.shape[0] + 1.0)[:, None]


def _spread_out(x: NDArray[Any]) -> NDArray[Any]:
    """Return a view with the same values: every second one of a new array that is twice as long."""
    wide: NDArray[Any] = np.full((*x.shape[:-1], 2 * x.shape[-1]), np.nan, x.dtype)
    wide[..., ::2] = x
    return wide[..., ::2]
