"""Equalities between norms: every claim is true, and none is missed, by brute force over many plans and shapes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from normcli.errors import UsageError
from normcli.norms.conventions import list_frameworks
from normcli.norms.plan import make_plan
from normcli.norms.request import Request, parse_norm_spec
from normcli.norms.table import NORMS
from normcli.results.calculate import calculate
from normcli.teach.compared_norm import Member, find_formula, find_relatives, is_same
from normcli.teach.equalities import Likeness, find_equalities
from tests.conftest import plan_request
from tests.marks import costly, slowly

SHAPES = [
    (4,),
    (2, 3),
    (1, 4),
    (3, 1),
    (2, 4, 3),
    (1, 6, 2),
    (2, 4, 1, 3),
    (2, 4, 2, 2),
    (1, 1, 4, 2),
    (1, 1),
    (2, 1, 2, 1, 2, 2),
]


def list_options(row, shape):
    axes = [axes for n in range(len(shape) + 1) for axes in itertools.combinations(range(len(shape)), n)]
    yield {"groups": 1} if row.needs_groups else {}
    if row.needs_groups:
        for groups, order in itertools.product((1, 2, 3, 4, 6), ("contiguous", "interleaved")):
            yield {"groups": groups, "group_order": order}
        yield {"groups": 2, "axes": (1,)}
    elif row.name in ("bn", "rms", "lp", "lrn"):
        yield from ({"axes": chosen} for chosen in axes)
    if row.name == "bn":
        yield from ({"eps": eps, "ddof": ddof} for eps in (0.0, 0.1) for ddof in (0, 1))
        yield {"like": "keras"}
    if row.name == "mvn":
        yield from ({"eps": 0.0}, {"eps": 0.1}, {"eps": 0.1, "eps_mode": "inside"})
    if row.name == "lp":
        yield from ({"p": 1.0}, {"eps": 0.0}, {"eps": 0.0, "p": 3.0})
    if row.name == "lrn":
        yield from ({"size": size, "alpha": 1.0} for size in (1, 2, 9, 11))


def list_conventions(row, shape):
    """Yield every convention of a norm, in every layout that is not the usual one."""
    groups = {"groups": 2} if row.needs_groups else {}
    layouts = {2: ("CN",), 3: ("NLC", "LNC"), 4: ("NHWC", "HWCN")}.get(len(shape), ())
    for framework, layout in itertools.product((None, *list_frameworks(row.name)), (None, *layouts)):
        yield {"like": framework, "layout": layout, **groups}


def list_requests(shape, list_options=list_options):
    """Every norm, over each set of axes and number of groups; the deviations with several eps and ddof."""
    for row in NORMS.values():
        for options in list_options(row, shape):
            request = Request(row.name, **options)
            try:
                yield request, make_plan(request, shape, np.dtype("f8"))
            except UsageError:
                continue


def part_cells(plan):
    """The partition cell by cell: for each cell the first cell of its group; of a window, all of its cells."""
    if plan.spec.window is None:
        groups = plan.grid.locate_groups(np.ix_(*map(np.arange, plan.grid.shape))).reshape(-1)
        _, first, group = np.unique(groups, return_index=True, return_inverse=True)
        return tuple(first[group].tolist())
    cells = np.arange(np.prod(plan.grid.shape)).reshape(plan.grid.shape)
    axis, length = plan.grid.axes[0], plan.grid.shape[plan.grid.axes[0]]
    seen = []
    for index in np.ndindex(plan.grid.shape):
        near = range(
            max(0, index[axis] - plan.spec.window.before), min(length, index[axis] + plan.spec.window.after + 1)
        )
        seen.append(tuple(int(cells[(*index[:axis], i, *index[axis + 1 :])]) for i in near))
    return tuple(seen)


def measure_gap(a, b):
    """The largest difference; NaN is equal to NaN, and infinitely far from all else."""
    one, other = a.astype("f8"), b.astype("f8")
    both = np.isnan(one) & np.isnan(other)
    return np.nan_to_num(np.where(both, 0.0, np.abs(one - other)), nan=np.inf).max()


def spell_numbers(a):
    """What two arrays have in common exactly where there is no gap between them."""
    return np.where(np.isnan(a), np.nan, a + 0.0).astype("f8").tobytes()


def spell_formula(plan):
    """What the issue calls the formula, in full: centre, divisor, p, eps and its place, ddof, the rule for 0."""
    norm, spec = plan.norm, plan.spec
    window = spec.window and [getattr(spec.window, name) for name in ("alpha", "exponent", "k", "divisor")]
    return norm.centre, norm.divisor, spec.p, spec.eps, spec.eps_mode, spec.ddof, spec.zero_rule, window


@costly
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        *((shape, "f8") for shape in SHAPES[:6]),
        *slowly(pytest.param(shape, "f8") for shape in SHAPES[6:]),
        *slowly(pytest.param(shape, "f4") for shape in SHAPES[:-1:2]),
    ],
    ids=str,
)
def test_every_claim_is_true_and_no_pair_with_one_partition_and_formula_is_missed(shape, dtype):
    values = np.random.default_rng(7).normal(3, 2, shape).astype(dtype)
    requests = list(list_requests(shape))
    members = []
    for number, (request, _) in enumerate(requests):
        result = calculate(plan_request(request, values), values)
        members.append(Member(str(number), result))
    claims = {tuple(map(int, e.names)): e for e in find_equalities(members) if not e.related}
    rules = [(m.plan.spec.window is None, part_cells(m.plan), spell_formula(m.plan)) for m in members]
    numbers = [spell_numbers(m.result.standardized) for m in members]
    for i, j in itertools.combinations(range(len(members)), 2):
        a, b, claim = members[i], members[j], claims.get((i, j))
        if rules[i] == rules[j]:
            assert claim is not None, (a.plan, b.plan)
            assert claim.kind is Likeness.IDENTICAL
        if claim is not None:
            gap = measure_gap(a.result.standardized, b.result.standardized)
        if claim is not None and claim.kind is not Likeness.SIMILAR:
            size = np.nan_to_num(np.abs(a.result.standardized.astype("f8"))).max()
            assert gap <= 4 * np.finfo(dtype).eps * size
        if claim is not None:
            assert claim.max_abs == gap
            assert (claim.kind is Likeness.IDENTICAL) == is_same(a.plan, b.plan)
        elif a.plan.grid.group_size > 1 and b.plan.grid.group_size > 1:
            assert numbers[i] != numbers[j], "equal numbers are always told"


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_relative_is_the_same_and_is_called_what_a_command_line_takes(shape):
    values, seen = np.random.default_rng(8).normal(1, 2, shape), 0
    for request, plan in [*list_requests(shape), *list_requests(shape, list_conventions)]:
        for name, relative in find_relatives(plan):
            spec = parse_norm_spec(name)
            found = calculate(plan_request(Request(spec.name, **spec.own), values), values)
            assert part_cells(found.plan) == part_cells(plan), (request, name)
            expected = calculate(plan, values).normalized
            np.testing.assert_allclose(found.normalized, expected, rtol=1e-12, atol=1e-14)
            assert relative.norm is not plan.norm or part_cells(relative) == part_cells(plan)
            seen += 1
    assert seen or len(shape) > 4


def compare(shape, *requests, values=None, dtype="f8"):
    values = (
        np.random.default_rng(9).normal(3, 2, shape).astype(dtype)
        if values is None
        else np.asarray(values, dtype)
    )
    members = []
    for request in requests:
        result = calculate(plan_request(request, values), values)
        members.append(Member(request.norm, result))
    return find_equalities(members)


def related(shape, request):
    return [e.names[1] for e in compare(shape, request) if e.related]


@pytest.mark.parametrize(
    ("request_", "shape", "relatives"),
    [
        pytest.param(Request("in"), (2, 4, 3, 3), ["gn:groups=4", "ln:axes=HW"], id="in is gn with groups=C"),
        pytest.param(Request("bn"), (1, 4, 3, 3), ["in", "gn:groups=4", "ln:axes=HW"], id="at N=1 bn is in"),
        pytest.param(Request("gn", groups=1), (2, 4, 3, 3), ["ln:axes=CHW"], id="gn of one group is ln over CHW"),
        pytest.param(Request("bn", eps=0.0), (3, 4), ["zscore"], id="bn without eps is zscore"),
        pytest.param(Request("bn", ddof=1), (1, 4, 3), ["ln:ddof=1", "in:ddof=1", "gn:groups=4:ddof=1"], id="ddof goes along"),
        pytest.param(Request("lrn"), (2, 4, 3), [], id="a window has none"),
        pytest.param(Request("mvn"), (2, 4, 3), [], id="no row is bent to another's eps"),
    ],
)  # fmt: skip
def test_norms_that_stand_aside(request_, shape, relatives):
    assert related(shape, request_) == relatives


def test_a_relative_that_is_a_column_is_not_told_again():
    assert not [
        e for e in compare((2, 4, 3, 3), Request("in"), Request("gn", groups=4)) if e.names[1] == "gn:groups=4"
    ]


def test_the_reasons_of_identical_norms():
    (claim, *_) = compare((2, 4, 3, 3), Request("ln", axes="CHW"), Request("gn", groups=1))
    assert claim.kind is Likeness.IDENTICAL
    assert claim.reason == "the same groups: both reduce c h w; groups=1 makes one group of all channels"
    assert claim.differences == ("gamma's shape, (C, H, W) against (C)",)
    assert claim.max_abs == 0
    (claim, *_) = compare((1, 4, 3, 3), Request("bn"), Request("in"))
    assert claim.reason == "the same groups: both reduce h w; n has length 1, so reducing it changes nothing"
    assert claim.differences == ()


def test_another_eps_is_no_equality_and_its_effect_is_said():
    (claim,) = compare((2, 4, 3), Request("bn"), Request("mvn"))
    assert claim.kind is Likeness.SIMILAR
    assert "eps 1e-05 inside the root against eps 1e-09 outside the root" in claim.reason
    assert 0 < claim.max_abs < 1e-4


@pytest.mark.parametrize(
    ("requests", "values", "reason"),
    [
        pytest.param([Request("ln"), Request("rms")], [[1, -1, 2, -2], [3, -3, 5, -5]], "every group's mean is 0", id="rms"),
        pytest.param([Request("bn"), Request("ln")], [[0, 0], [0, 0]], "whose values are all 0", id="zeros"),
        pytest.param([Request("l1"), Request("lp")], [[2], [-3]], "whose groups have one value each", id="p of one value"),
        pytest.param([Request("wn"), Request("lp")], [[2, 5], [-3, 1]], "come to the same after rounding", id="a floor"),
        pytest.param([Request("bn"), Request("ln")], [[1, 3], [3, 1]], "all have the same mean and var", id="one mean and variance"),
    ],
)  # fmt: skip
def test_what_holds_on_this_tensor_alone_is_said_so(requests, values, reason):
    (claim, *_) = compare(None, *requests, values=values)
    assert claim.kind is Likeness.COINCIDENT
    assert claim.reason.startswith("on this tensor, wh")
    assert reason in claim.reason


def test_windows_that_reach_over_the_whole_axis_are_the_same():
    claim, *_ = compare((2, 4, 3), *(Request("lrn", like="tensorflow", size=size) for size in (5, 11)))
    assert (claim.kind, claim.reason) == (Likeness.IDENTICAL, "the same window")


def test_what_differs_beside_the_shape_of_gamma():
    x = (2, 3)
    plain, gemma = Request("rms"), Request("rms", like="gemma", eps=1e-5)
    (claim, *_) = compare(x, plain, gemma)
    assert any("to which rms adds 1" in difference for difference in claim.differences)
    (claim, *_) = compare(x, Request("zscore"), Request("bn", eps=0.0))
    assert any(
        "rstd of a constant group, which is 1 for zscore" in difference for difference in claim.differences
    )
    assert find_formula(make_plan(Request("zscore"), x, np.dtype("f8"))) == find_formula(
        make_plan(Request("bn", eps=0.0), x, np.dtype("f8"))
    )


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        pytest.param((2, 3, 4, 4), "gamma's shape, (3,) against (4,)", id="of another length"),
        pytest.param((2, 4, 3, 4), "gamma's axis, 1 against 3", id="along another axis"),
        pytest.param((2, 1, 3, 1), None, id="of one value"),
    ],
)
def test_gamma_along_channels_that_lie_elsewhere(shape, told):
    claim, *_ = compare(shape, Request("gn", groups=1), Request("gn", groups=1, layout="NHWC"))
    assert claim.kind is Likeness.IDENTICAL
    assert claim.differences == (() if told is None else (told,))
