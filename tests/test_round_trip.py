"""Every option of every norm, from a command line to files and back: golden files, and stats files."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import normalize
from normcli.fitting.stats_file import read_stats
from normcli.golden.golden import verify_golden
from normcli.norms.conventions import find_convention, list_frameworks
from normcli.norms.divisors import Measurement
from normcli.norms.option_kinds import OptionKind
from normcli.norms.options import NAMES, OPTIONS, find_option
from normcli.norms.rules import AxesRule, EpsMode, EpsRule
from normcli.norms.table import NORMS
from tests.marks import costly, sampled, slowly

SHAPE = (4, 6, 12)


def choose_value(norm, name):
    """Return a value of an option of a norm, other than its default, that suits `SHAPE`."""
    axes = {AxesRule.CHANNEL_WINDOW: "2", AxesRule.CHANNEL_GROUPS: "NC"}.get(norm.axes, "NL")
    kept = {AxesRule.CHANNEL_WINDOW: "NC", AxesRule.CHANNEL_GROUPS: "L"}.get(norm.axes, "C")
    mode = EpsMode.INSIDE if norm.eps_mode is EpsMode.OUTSIDE else EpsMode.OUTSIDE
    frameworks = list_frameworks(norm.name)
    return {
        "feature_axes": "C", "gamma_offset": 1, "layout": "NLC", "axes": axes, "keep": kept, "groups": 3, "group_order": "interleaved", "eps": 0.125,
        "eps_mode": mode.value, "ddof": 1, "p": np.inf, "size": 3, "alpha": 0.5, "exponent": 0.5, "k": 2.0,
        "dtype": "float32", "like": frameworks[0] if frameworks else None,
        "range": (-1.0, 3.0), "quantiles": (10.0, 97.5), "no_mean": True, "no_scale": True, "rows": "L",
        "over": (1, 5), "iterations": 3, "u": (1.0, -0.5, 2.0, 0.0), "v": (*[0.25] * 71, 3.0),
    }[name]  # fmt: skip


def list_cases(*, fitted):
    """Yield each norm with each of its options, and with what it cannot do without."""
    for norm in NORMS.values():
        for option in OPTIONS:
            value = choose_value(norm, option.name)
            if not option.belongs_to(norm) or value is None:
                continue
            needed = {"groups": 2} if norm.needs_groups else {}
            if fitted and option.name not in ("axes", "keep"):  # samples must share their statistics
                needed["axes"] = "NCL" if norm.needs_groups else "NL"
            if fitted and option.name == "over":
                continue
            if option.name == "group_order":
                needed["groups"] = 2
            if option.name == "iterations":
                needed["u"] = choose_value(norm, "u")
            if option.name == "like" and find_convention(value, norm.name).eps is EpsRule.GIVEN:
                needed["eps"] = 0.5
            yield pytest.param(norm, option, needed | {option.name: value}, id=f"{norm.name}-{option.name}")


def quickly(cases):
    """Leave the quick loop each option once."""
    quick = {}
    for case in cases:
        quick.setdefault(case.values[1].name, case)
    return [case if case in quick.values() else slowly([case])[0] for case in cases]


GOLDEN = list(list_cases(fitted=False))
FITTED = [
    case
    for case in list_cases(fitted=True)
    if case.values[0].axes is not AxesRule.CHANNEL_WINDOW and case.values[0].rows is None
]
OF_NO_FIT = {"over", "size", "alpha", "exponent", "k", "rows", "iterations", "u", "v"}
"""Those of a window, which has statistics of each value, of a matrix, and of a part of a group: nothing to fit."""


def write_arguments(options):
    rows = ((find_option(name), value) for name, value in options.items())
    return [
        part
        for row, value in rows
        for part in (f"--{row.word}", *([] if row.kind is OptionKind.FLAG else [row.format(value)]))
    ]


def draw(rng, count=SHAPE[0]):
    return rng.normal(3.0, 2.0, (count, *SHAPE[1:]))


@pytest.mark.parametrize(
    ("cases", "missing"), [pytest.param(GOLDEN, set(), id="golden"), pytest.param(FITTED, OF_NO_FIT, id="fit")]
)
def test_every_option_of_the_table_goes_round(cases, missing):
    assert {case.values[1].name for case in cases} == set(NAMES) - missing


@sampled("norm", "option")
@pytest.mark.parametrize(("norm", "option", "options"), quickly(GOLDEN))
def test_golden_files_are_checked_with_the_options_that_they_were_written_with(
    norm, option, options, normcli, tmp_path, rng
):
    np.save(tmp_path / "x.npy", draw(rng))
    folder = tmp_path / "golden"
    drawn = ("--affine-seed", "1") if {"feature_axes", "gamma_offset"} & options.keys() else ()
    asked = "golden", norm.name, "-i", tmp_path / "x.npy", *write_arguments(options), *drawn
    ran = normcli(*asked, "-o", folder, "-q")
    assert (ran.code, ran.err) == (0, "")
    request = verify_golden(folder).problem.plan.request
    given = {name: value for name, value in request._asdict().items() if value is not None}
    assert given == {"norm": norm.name, **options}
    assert getattr(request, option.name) == options[option.name]
    assert normcli("check", folder, "-q").code == 0


@pytest.mark.slow
@costly
@sampled("norm", "option")
@pytest.mark.parametrize(("norm", "option", "options"), quickly(FITTED))
def test_stats_files_are_merged_and_used_with_the_options_that_they_were_fitted_with(
    norm, option, options, normcli, tmp_path, rng
):
    x = draw(rng, 9)
    parts = [tmp_path / name for name in ("a.npy", "b.npy")]
    for path, part in zip(parts, (x[:5], x[5:]), strict=True):
        np.save(path, part)
    np.save(tmp_path / "x.npy", x)
    of_output = {name: value for name, value in options.items() if name == "dtype"}  # of apply, not of fit
    arguments = write_arguments({name: value for name, value in options.items() if name not in of_output})
    stats = [tmp_path / name for name in ("a.npz", "b.npz", "both.npz")]
    for path, files in zip(stats, ([parts[0]], [parts[1]], parts), strict=True):
        assert normcli("fit", norm.name, *arguments, *files, "-o", path, "-q").code == 0
    if norm.divisor.measurement is not Measurement.QUANTILES:  # those of the parts do not give those of both
        assert normcli("merge", *stats[:2], "-o", stats[2], "-q").code == 0
    kept = read_stats(str(stats[2])).subject.request
    if option.name == "feature_axes":
        assert kept.feature_axes == ("NCL".index(options["feature_axes"]),)
    elif option.name not in ("axes", "keep", "dtype"):
        assert getattr(kept, option.name) == options[option.name]
    used = (stats[2], tmp_path / "x.npy", "-o", tmp_path / "y.npy", "-q")
    assert normcli("apply", *used, *write_arguments(of_output)).code == 0
    expected = normalize(x, norm.name, **options).normalized
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), expected, strict=True)
