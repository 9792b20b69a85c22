"""A kernel with one part replaced, asked of as what it should be: for the tests of faults."""

from __future__ import annotations

import functools

import numpy as np

from normcli.checking.check import NORMALIZED, check
from normcli.checking.ulp import choose_counting_dtype, choose_tolerance
from normcli.engine.inputs import Inputs
from normcli.identifying.faults.case_sampling import open_case
from normcli.identifying.faults.fault_search import open_cases
from normcli.identifying.faults.joint_search import open_joints
from normcli.identifying.words.request_phrasing import diagnose_actual
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from tests.conftest import pose


def draw(shape, dtype="f4", mean=3.0, seed=0):
    """Return values whose rows and columns differ in mean and in spread."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    for axis, length in enumerate(shape):
        along = [length if other == axis else 1 for other in range(len(shape))]
        x = x * rng.lognormal(0.0, 0.3, along) + rng.normal(0.0, 0.3, along)
    return (x + mean).astype(dtype)


def draw_affine(length, seed=1):
    """Return a gamma and a beta."""
    rng = np.random.default_rng(seed)
    return rng.normal(1.0, 0.4, length).astype("f4"), rng.normal(0.0, 0.5, length).astype("f4")


def standardize(x, axes=-1, eps=1e-5, mean=None, square=None):
    """Return x̂ in float64, of a mean and a square in the place of its own."""
    x = x.astype(np.float64)
    mean = x.mean(axes, keepdims=True) if mean is None else mean
    square = ((x - mean) ** 2).mean(axes, keepdims=True) if square is None else square
    return (x - mean) / np.sqrt(square + eps)


def plan(norm, x, **options):
    return make_plan(Request(norm, **options), x.shape, np.dtype(x.dtype))


def open_(norm, x, y, gamma=None, beta=None, given=None, **options):
    """Return the case."""
    made = plan(norm, x, **options)
    return open_case(pose(made, x, Inputs(gamma, beta, given)), y, choose_counting_dtype(y.dtype))


def ask(norm, x, y, gamma=None, beta=None, given=None, **options):
    """Return the claims."""
    y = np.asarray(y).astype(options.pop("rounded", x.dtype))
    subject = pose(plan(norm, x, **options), x, Inputs(gamma, beta, given))
    return open_joints([*open_cases([subject], y, choose_counting_dtype(y.dtype))])


def name(*asked, **options):
    """Return the ids of the likeliest faults, and the clauses that the data cannot tell apart."""
    claims = ask(*asked, **options)
    best = [claim for claim in claims if claim.rank == claims[0].rank]
    return [fault.id for fault in claims[0].faults] if claims else [], [claim.cause for claim in best]


def diagnose_exactly(subject, y):
    """Return what is said of y where only the exact result would pass."""
    exactly = functools.partial(choose_tolerance, rtol=0.0, atol=0.0)
    checked = check(subject, {NORMALIZED: y}, exactly)
    return diagnose_actual(subject, y, checked)
