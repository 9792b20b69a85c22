"""Next steps: an input that tells candidates apart, a tolerance that passes, an exchange of x and y."""

from __future__ import annotations

import contextlib
import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.algorithms.row_formula import RowFormula
from normcli.checking.ulp import choose_counting_dtype, choose_tolerance
from normcli.dtypes import OUTPUT_DTYPES, is_float
from normcli.errors import NormError
from normcli.identifying.models.divisor_fit import COMMON_EPS
from normcli.identifying.question import Kind, Question
from normcli.identifying.sampling import put_back, take_groups, widen
from normcli.identifying.words.request_difference import try_request
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.table import NORMS
from normcli.printable import format_up
from normcli.results.calculate import calculate
from normcli.results.normalize import normalize
from normcli.tensors.mapped import fetch
from normcli.tensors.random.generate import generate
from normcli.tensors.random.recipe import Recipe
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from normcli.algorithms.row_computation import Computation
    from normcli.checking.tally import Comparison
    from normcli.dtypes import Floats
    from normcli.identifying.question import Diagnosis, Identification
    from normcli.identifying.search.match import Match


MOST_CANDIDATES = 6
"""The most reproductions or matches that become candidates, the best first."""

MOST_VALUES = 1 << 16
"""The most values, about, of a suggested tensor: a larger one has its first axis shortened."""

DRAWS = (
    ("normal", None, None),
    ("uniform", 0.0, 1.0),
    ("uniform", -1e-3, 1e-3),
    ("uniform", 0.0, 300.0),
    ("uniform", 100.0, 101.0),
    ("uniform", 1000.0, 1001.0),
    ("uniform", 0.0, 60000.0),
)
"""Distributions of suggested tensors, with bounds: near 0 eps shows, far from 0 sums cancel, large values
overflow."""


class Suggestion(NamedTuple):
    """An input for which candidates (norms with options and algorithms) have different results.

    Parameters
    ----------
    recipe : Recipe
        The shape, distribution and seed of the input.
    told : int
        The number of pairs of candidates whose results differ.
    pairs : int
        The number of all pairs of candidates.
    share : float
        The largest share of values that differ between two candidates.
    names : tuple of str
        The names of the candidates.
    """

    recipe: Recipe
    told: int
    pairs: int
    share: float
    names: tuple[str, ...]

    @property
    def command(self) -> str:
        """The command that writes this input to a file."""
        shape, dist, low, high, seed, rng, _, dtype = self.recipe
        bounds = "" if low is None or high is None else f" --low {low:g} --high {high:g}"
        shown = ",".join(map(str, shape))
        return (
            f"normcli generate --shape {shown} --dist {dist}{bounds} --seed {seed} --rng {rng} --dtype {dtype} "
            "-o try.npy"
        )


class _Candidate(NamedTuple):
    """A norm with its options, and the way in which it is calculated.

    Parameters
    ----------
    request : Request
    computation : Computation or None
        The algorithm, dtype of sums and casts; None for the exact result, rounded once to the dtype of x.
    """

    request: Request
    computation: Computation | None

    @property
    def options(self) -> dict[str, Any]:
        """The options that the request has, by name."""
        return {name: value for name, value in self.request._asdict().items() if value is not None}

    @property
    def name(self) -> str:
        chosen = (f"{name}={value}" for name, value in self.options.items() if name != "norm")
        how = () if self.computation is None else (self.computation.name,)
        return " ".join((self.request.norm, *chosen, *how))

    def write(self, x: NDArray[Any]) -> Floats:
        """Return the candidate's result for a tensor, in float64."""
        if self.computation is None:
            return widen(normalize(x, **self.options, dtype=x.dtype.name).normalized)
        plan = make_plan(self.request, x.shape, x.dtype)
        rows = self.computation.run(take_groups(plan.grid, x), RowFormula.of(plan), x.dtype)
        return widen(put_back(plan.grid, rows))


def suggest(found: Identification) -> Suggestion | None:
    """Return the input for which the most pairs of candidates have different results, without gamma and beta.

    Parameters
    ----------
    found : Identification
        Its reproductions are the candidates or, if there are none, its matches.

    Returns
    -------
    Suggestion or None
        None if there are no two candidates, or if their results are equal for every input that is tried.
    """
    x = found.question.x
    every = list(dict.fromkeys(_list_candidates(found)))
    dtype = x.dtype.name if x.dtype.name in OUTPUT_DTYPES else "float64"
    shape = _choose_shape(x.shape)
    names = tuple(candidate.name for candidate in every)
    tried: list[tuple[tuple[int, float], Suggestion]] = []
    for dist, low, high in DRAWS:
        recipe = Recipe(shape, dist, low, high, seed=0, rng="numpy", dtype=dtype)
        with contextlib.suppress(NormError):
            values = generate(recipe).values
            pairs = list(itertools.combinations([candidate.write(values) for candidate in every], 2))
            shares = [float(np.mean((a != b) & ~(np.isnan(a) & np.isnan(b)))) for a, b in pairs]
            if any(shares):
                told = sum(share > 0.0 for share in shares)
                tried.append(((told, sum(shares)), Suggestion(recipe, told, len(pairs), max(shares), names)))
    return max(tried, key=lambda one: one[0])[1] if tried else None


def _list_candidates(found: Identification) -> Iterator[_Candidate]:
    """Yield candidates of the first 6 reproductions, or if there are none, of the first 6 matches.

    Each is yielded with its own eps, and with the smallest and the largest usual eps that fit.
    """
    question = found.question
    for told in found.reproductions[:MOST_CANDIDATES]:
        yield from _spread_eps(question, told.match, told.computation)
    if not found.reproductions:
        for match in (found.matches or found.doubtful)[:MOST_CANDIDATES]:
            yield from _spread_eps(question, match, None)


def _spread_eps(question: Question, match: Match, computation: Computation | None) -> Iterator[_Candidate]:
    """Yield the candidates of a match, with its eps and the smallest and largest usual eps that fit.

    Nothing for norms with windows or matrices. `computation` is the algorithm, or None for the exact result.
    """
    if match.window is not None or match.rows is not None:
        return
    own: dict[str, Any] = {"layout": question.layout, "ddof": match.ddof or None, "eps_mode": match.eps_mode}
    placed = match.make_request()._replace(**own)
    request = placed._replace(axes=None)
    grids = [plan and plan.grid.canonical for plan in (try_request(one, question) for one in (request, placed))]
    if None in grids or grids[0] != grids[1]:
        request = placed  # the norm's own axes are others, but for those of length 1
    low, high = match.eps_range
    fitting = sorted(eps for eps in COMMON_EPS if low <= eps <= high) if match.takes_eps else []
    for eps in dict.fromkeys((match.eps, *fitting[:1], *fitting[-1:])) if match.takes_eps else (None,):
        yield _Candidate(request._replace(eps=eps), computation)


def _choose_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape with at least 2 for each length, and its first length cut for about 2¹⁶ values in all."""
    longer = tuple(max(2, length) for length in shape)
    rest = math.prod(longer[1:])
    return (min(longer[0], max(2, MOST_VALUES // max(1, rest))), *longer[1:])


MOST_EXCHANGED = 1 << 20
"""Tensors with more values than this are not tested for an exchange of x and y."""


def hint_exchange(question: Question, told: Diagnosis) -> Diagnosis:
    """Return a diagnosis whose next step asks whether x and y were exchanged, if x is a norm of y.

    `told` is the diagnosis so far. It is returned as it is if it has found a norm or a fault, or could not
    decide; if x is no norm of y with default options; if x is not of floats; and for tensors above 2²⁰ values.
    """
    x, y = question.x, question.y
    is_open = told.verdict in (Kind.AFFINE, Kind.NONE) and is_float(x.dtype)
    if not is_open or x.shape != y.shape or x.size > MOST_EXCHANGED:
        return told
    x, y = fetch(x), fetch(y)
    tolerance = choose_tolerance(choose_counting_dtype(x.dtype))
    with np.errstate(all="ignore"):
        for name in NORMS:
            with contextlib.suppress(NormError):
                made = calculate(
                    make_plan(Request(name, layout=question.layout), y.shape, y.dtype), y
                ).normalized
                is_near = np.allclose(widen(made), widen(x), tolerance.rtol, tolerance.atol)
                if is_near and x.any():
                    return told._replace(next_step=f"x is {name} of y: are input and actual exchanged?")
    return told


def suggest_option(found: Comparison) -> str | None:
    """Return the option with the smallest tolerance at which an array passes, such as `--atol 0.0013`.

    It is `--max-ulp` if distances are judged in ulp, else `--rtol` or `--atol`, whichever grows by less. A rtol
    of 1 and more, with which zeros pass, is suggested only where no atol is enough. None if the array passes
    already, or if no finite tolerance is enough.
    """
    smallest, limits = found.smallest, found.tolerance
    if smallest is None or found.ok:
        return None
    names = ("rtol", "atol") if limits.max_ulp is None else ("max_ulp",)
    passing = [name for name in names if getattr(smallest, name) < math.inf]
    least, own = ({name: getattr(one, name) for name in passing} for one in (smallest, limits))
    growth = {name: least[name] / own[name] if own[name] else math.inf for name in passing}
    name = min(passing, key=lambda name: (name == "rtol" and least[name] >= 1.0, growth[name]), default=None)
    return None if name is None else f"--{name.replace('_', '-')} {format_up(least[name])}"
