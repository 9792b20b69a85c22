"""Gradients through a gate: each the exact one, rounded once, by dx, gamma, beta and the gate itself."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from normcli import backward
from normcli.engine.walk import Effort
from normcli.errors import DataError, UsageError
from normcli.numerics.elements.activation import Activation
from normcli.numerics.rational import find_root
from normcli.results.arguments import read_arguments
from normcli.results.backward import calculate_backward
from tests.conftest import pose
from tests.marks import costly, sampled
from tests.numerics.test_numerics_two_ways import ROUND_NOTHING
from tests.results.test_surroundings import ACTIVATIONS, find_slope, round_mpf

EPS = 0.25  # a double


@pytest.fixture(autouse=True)
def _many_bits():
    with mpmath.workprec(1200):
        yield


def differentiate(rows, dys, gamma, every, *, centred, normalizes):
    """Return x̂ of rows, and the derivatives by them, in 1200 bits; `every` says which values count."""
    hats, dxs = [], []
    for row, dy, counted in zip(rows, dys, every, strict=True):
        n, used = sum(counted), [normalizes or counts for counts in counted]
        mean = sum(x for x, counts in zip(row, counted, strict=True) if counts) / n if centred else 0
        w = [x - mean for x in row]
        square = sum(a * a for a, counts in zip(w, counted, strict=True) if counts) / n + EPS
        root = mpmath.sqrt(square)
        g = [a * b if counts else 0 for a, b, counts in zip(dy, gamma, used, strict=True)]
        shift = sum(g) / n if centred else 0
        steep = sum(a * b for a, b in zip(g, w, strict=True)) / (n * square)
        hats.append([a / root if counts else 0 for a, counts in zip(w, used, strict=True)])
        dxs.append(
            [
                (a - counts * (shift + b * steep)) / root if uses else one
                for a, b, one, counts, uses in zip(g, w, dy, counted, used, strict=True)
            ]
        )
    return hats, dxs


def differentiate_exactly(x, z, dy, gamma, beta, act, order, *, centred, dtype, mask=None, fill="pass"):
    """Return dx, dgamma, dbeta and dgate of a gated norm along rows, rounded once."""
    summed = tuple(axis for axis, n in enumerate(z.shape) if n < x.shape[axis])
    z, normalizes = np.broadcast_to(z, x.shape), fill == "normalize"
    counted = np.broadcast_to(True if mask is None else mask, x.shape)
    used = (counted | normalizes).tolist()
    counted = counted.tolist()

    def lay(function, *arrays):
        columns = zip(*(a.tolist() if isinstance(a, np.ndarray) else a for a in arrays), strict=True)
        return [[function(*map(mpmath.mpf, values)) for values in zip(*row, strict=True)] for row in columns]

    gamma, beta = [mpmath.mpf(v) for v in gamma.tolist()], [mpmath.mpf(v) for v in beta.tolist()]
    factor, slope = lay(ACTIVATIONS[act], z), lay(lambda v: find_slope(act, v), z)
    product = "float32" if dtype != "float64" else dtype
    kinds = {"centred": centred, "normalizes": normalizes}
    dy = dy if fill != "zero" else np.where(counted, dy, 0.0)
    if order == "after":
        upstream = lay(lambda a, b, uses: a * b if uses else a, dy, factor, used)
        hats, dx = differentiate(lay(lambda a: a, x), upstream, gamma, counted, **kinds)
        y = [[a * g + b for a, g, b in zip(row, gamma, beta, strict=True)] for row in hats]
        dgate = lay(lambda a, b, c, uses: a * b * c * uses, dy, y, slope, used)
    else:
        upstream = lay(lambda a: a, dy)
        product = lay(lambda a, b: mpmath.mpf(round_mpf(a * b, product)), x, factor)
        hats, by_product = differentiate(product, upstream, gamma, counted, **kinds)
        dx = lay(lambda a, b: a * b, by_product, factor)
        dgate = lay(lambda a, b, c: a * b * c, by_product, x, slope)
    dgamma = [sum(column) for column in zip(*lay(lambda a, b: a * b, upstream, hats), strict=True)]
    dbeta = [sum(column) for column in zip(*lay(lambda a, uses: a * uses, upstream, used), strict=True)]
    dgate = np.array(dgate, object).sum(summed, keepdims=True)
    return {
        name: np.vectorize(lambda v: round_mpf(v, dtype))(np.array(values, object))
        for name, values in {"dx": dx, "dgamma": dgamma, "dbeta": dbeta, "dgate": dgate}.items()
    }


def draw(dtype, rows=3, width=5):
    rng = np.random.default_rng(11)
    x, z, dy = rng.standard_normal((3, rows, width))
    z[0] = [0.0, -20.0, 9.0, 1e-6, -0.75]
    x[1] += 50.0
    gamma, beta = rng.standard_normal((2, width))
    return tuple(a.astype(dtype) for a in (x, z, dy, gamma, beta))


def require_exact(arrays, act, order, norm, dtype, **options):
    x, z, dy, gamma, beta = arrays
    beta = beta if norm == "ln" else np.zeros_like(beta)
    given = {"gamma": gamma, "eps": EPS, **({"beta": beta} if norm == "ln" else {})}
    found = backward(x, dy, norm, gate=z, gate_act=act, gate_order=order, **given, **options)
    exact = differentiate_exactly(
        *(x, z, dy, gamma, beta), act, order, centred=norm == "ln", dtype=dtype, **options
    )
    for name in ("dx", "dgate", "dgamma", *(("dbeta",) if norm == "ln" else ())):
        assert found.field(name).astype("f8").tolist() == exact[name].tolist(), name


@pytest.mark.slow
@costly
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("norm", ["ln", "rms"])
@pytest.mark.parametrize("order", ["after", "before"])
@pytest.mark.parametrize("act", Activation)
def test_each_gradient_is_the_exact_one_rounded_once(act, order, norm, dtype):
    require_exact(draw(dtype), act.value, order, norm, dtype)


MASK = np.array([[1, 1, 0, 1, 1], [0, 1, 1, 1, 0], [1, 0, 1, 0, 1]]) == 1


@sampled
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("fill", [None, "pass", "zero", "normalize"])
@pytest.mark.parametrize("norm", ["ln", "rms"])
@pytest.mark.parametrize("order", ["after", "before"])
@pytest.mark.parametrize("gate", [np.s_[:], np.s_[:1], np.s_[:, :1], np.s_[:1, :1]], ids=["xz", "x", "z", "1"])
def test_a_gate_that_is_broadcast_and_values_that_do_not_count(gate, order, norm, fill, dtype):
    x, z, *rest = draw(dtype)
    given = {} if fill is None else {"mask": MASK, "fill": fill}
    require_exact((x, z[::-1][gate], *rest), "silu", order, norm, dtype, **given)


@pytest.mark.parametrize("norm", ["ln", "rms"])
@pytest.mark.parametrize("fill", ["pass", "normalize"])
@pytest.mark.parametrize("order", ["after", "before"])
def test_fractions_give_the_same(order, norm, fill, monkeypatch):
    for place, asks_always in ROUND_NOTHING.items():
        monkeypatch.setattr(f"normcli.{place}", asks_always)
    x, z, *rest = draw("float64", rows=3)
    require_exact((x, z[:1], *rest), "gelu", order, norm, "float64", mask=MASK, fill=fill)
    for given in ({}, {"mask": MASK, "fill": fill}):
        require_exact((x, z, *rest), "silu", order, norm, "float64", **given)


def test_a_sum_that_pairs_do_not_decide():
    """The terms of each gate cancel but for 2⁻³⁰⁰ of the largest."""
    x, z, dy, gamma, beta = draw("float64", rows=3)
    x[1], dy[1], dy[0] = x[2], -dy[2], dy[0] * 1e-200
    require_exact((x, z[:1], dy, gamma, beta), "silu", "after", "ln", "float64")
    require_exact((x, z[:1], dy, gamma, beta), "tanh", "before", "ln", "float64")


@pytest.mark.parametrize("order", ["after", "before"])
@pytest.mark.parametrize("fill", ["pass", "normalize"])
def test_a_nan_that_does_not_count_adds_nothing_to_a_sum(order, fill):
    x, z, dy, gamma, beta = draw("float64")
    given = {"gate_order": order, "gamma": gamma, "beta": beta, "nan": "omit", "fill": fill, "eps": EPS}
    x[1, 2] = np.nan
    whole, summed = (backward(x, dy, "ln", gate=gate, **given) for gate in (z[:1].repeat(3, 0), z[0]))
    assert whole.dgate[1, 2] == 0.0
    assert np.isfinite(summed.dx[0]).all()
    np.testing.assert_allclose(summed.dgate, whole.dgate.sum(0), rtol=1e-14)


@pytest.mark.parametrize("order", ["after", "before"])
@pytest.mark.parametrize("shape", [(5,), (1, 5), (3, 1), (1,), (), (3, 5)], ids=str)
def test_dgate_has_the_shape_of_its_gate(shape, order):
    x, z, dy, *_ = draw("float32")
    found = backward(x, dy, "ln", gate=np.resize(z, shape), gate_order=order)
    assert np.shape(found.dgate) == shape


@pytest.mark.parametrize("order", ["after", "before"])
@pytest.mark.parametrize("shape", [(0, 5), (3, 0)])
def test_a_gate_of_no_values_has_a_gradient_of_0(shape, order):
    found = backward(np.ones(shape), np.ones(shape), "ln", gate=np.ones((1, shape[1])), gate_order=order)
    assert found.dgate.shape == (1, shape[1])
    assert not found.dgate.any()


def test_parameters_that_pairs_do_not_decide_are_summed_exactly():
    """dy · act(z) cancels in each column but for 2⁻³⁰⁰ of it: no pair holds that."""
    x, z, dy, gamma, beta = draw("float64", rows=3)
    z[1], dy[1], dy[0] = z[2], -dy[2], dy[0] * 1e-200
    x[1] = x[2]
    require_exact((x, z, dy, gamma, beta), "silu", "after", "ln", "float64")
    dy[0] *= 1e170
    require_exact(tuple(a.astype("f4") for a in (x, z, dy, gamma, beta)), "silu", "after", "ln", "float32")


@pytest.mark.parametrize("seed", range(3))
def test_the_gamma_of_a_whole_group_behind_a_gate_whose_tail_is_steep(seed):
    """GELU far below 0 has a large error in pairs, of which the sum over the group has to know."""
    rng = np.random.default_rng(seed)
    x, dy = rng.normal(size=(2, 8, 1))
    gate = rng.uniform(-12.0, -8.5, (8, 1))
    found = backward(x, dy, "bn", gate=gate, gate_act="gelu", gamma=[1.5], beta=[0.0])
    wide = [Fraction(value) for value in x[:, 0].tolist()]
    mean = sum(wide) / 8
    divisor = find_root(sum((value - mean) ** 2 for value in wide) / 8 + Fraction(1e-5), 400)
    upstream = [
        Fraction(d) * Activation.GELU.evaluate_exactly(Fraction(z), 300)[0]
        for d, z in zip(dy[:, 0].tolist(), gate[:, 0].tolist(), strict=True)
    ]
    exact = sum(u * (value - mean) for u, value in zip(upstream, wide, strict=True)) / divisor
    assert (found.dgamma[0], found.dbeta[0]) == (float(exact), float(sum(upstream)))


@pytest.mark.parametrize("norm", ["ln", "rms"])
@pytest.mark.parametrize("gate", [np.s_[:], np.s_[:1], np.s_[:, :1]], ids=["whole", "x", "z"])
@pytest.mark.parametrize("given", [{}, {"mask": MASK, "fill": "normalize"}], ids=["all", "mask"])
def test_a_product_of_dy_and_the_gate_beyond_the_range_of_doubles(given, gate, norm):
    """dy · act(z) is 10³¹⁰ at most, and so are dbeta and dgamma; times gamma, it is within float64's range."""
    x, z, dy, gamma, beta = draw("float64")
    arrays = x, 1e10 * np.abs(z)[gate], 1e299 * dy, 1e-12 * gamma, beta
    require_exact(arrays, "silu", "after", norm, "float64", **given)


def test_a_product_beyond_the_range_of_doubles_in_one_of_many_groups():
    x, z, dy, *_ = draw("float64", rows=4)
    z, dy[2, 1] = np.abs(z) + 1.0, 1e308
    dy[2, 2] = -1e308
    given = {
        "gate": z,
        "gate_act": "none",
        "eps": EPS,
        "running_mean": np.zeros(5),
        "running_var": np.full(5, 1e30),
    }
    found = backward(x, dy, "bn", **given)
    expected = [float(Fraction(a) * Fraction(b) / 10**15) for a, b in zip(dy[2], z[2], strict=True)]
    np.testing.assert_allclose(found.dx[2], expected, rtol=1e-14)


@pytest.mark.slow
@sampled
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("norm", ["bn", "ln", "gn", "rms", "in", "lp"])
@pytest.mark.parametrize("order", ["after", "before"])
def test_bands_tiles_and_threads_give_the_same_bits(norm, order, dtype):
    rng = np.random.default_rng(5)
    x, z, dy = rng.standard_normal((3, 4, 6, 30)).astype(dtype)
    options = {"groups": 2} if norm == "gn" else {}
    given = {"gate": z, "gate_order": order, **options}
    summed = {"gate": z[:, :1]}
    if norm == "gn":
        summed = {"gate": z[:1, :, :1], "gamma": np.ones(6) / 3, "beta": dy[0, :, 0]}
    for gate in (given, given | summed):
        asked = read_arguments(x, norm, gate)

        def differentiate(effort, asked=asked):
            problem = pose(asked.plan, asked.values, asked.inputs, dy)._replace(effort=effort)
            return calculate_backward(problem).collect()

        whole, cut = differentiate(Effort(threads=1)), differentiate(Effort(threads=2, block=64, whole=1))
        assert {name: a.tobytes() for name, a in whole.items()} == {
            name: a.tobytes() for name, a in cut.items()
        }


def test_the_gate_keeps_its_dtype():
    x, z, dy, *_ = draw("float32")
    found = backward(x, dy, "rms", gate=z.astype("f8"))
    assert (found.dx.dtype, found.dgate.dtype) == (np.float32, np.float64)
    half = backward(x.astype("f2"), dy, "rms", gate=z.astype("f2"), gate_order="before")
    assert (half.dx.dtype, half.dgate.dtype) == (np.float16, np.float16)
    assert set(half.collect()) == {"dx", "dgamma", "dbeta", "dgate"}


@pytest.mark.parametrize("order", ["after", "before"])
def test_what_is_not_finite_spreads_in_its_group_alone(order):
    x, z, dy, *_ = draw("float64")
    z[0, 0] = np.nan
    found = backward(x, dy, "ln", gate=z, gate_order=order)
    assert np.isnan(found.dx[0]).all()
    assert np.isfinite(found.dx[1:]).all()
    assert np.isfinite(found.dgate[1:]).all()
    z[0, 0] = -np.inf
    found = backward(x, dy, "ln", gate=z)
    assert np.isfinite(found.dx).all()
    assert found.dgate[0, 0] == 0.0


@pytest.mark.parametrize(
    ("norm", "options", "error", "words"),
    [
        pytest.param("ln", {"gate": np.ones(4)}, DataError, "does not broadcast to", id="shape"),
        pytest.param("lrn", {"gate": np.ones((3, 5))}, UsageError, "lrn takes no gate", id="lrn"),
        pytest.param(
            "sn", {"gate": np.ones((3, 5))}, UsageError, "sn has no backward pass with a gate", id="sn"
        ),
        pytest.param("ln", {"gate_order": "before"}, UsageError, "give --gate too", id="no gate"),
        pytest.param("ln", {"clip_output": (0, 1)}, UsageError, "no option 'clip_output'", id="clip"),
    ],
)
@pytest.mark.all_quick
def test_refusals(norm, options, error, words):
    x, _, dy, *_ = draw("float64")
    with pytest.raises(error, match=words):
        backward(x, dy, norm, **options)
