"""What computations write of some groups, all eps at once, is what each writes alone."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.algorithms.row_computation import parse_computation
from normcli.algorithms.row_formula import RowFormula
from normcli.identifying.attempts import LEAST_SHARE, Trial
from normcli.identifying.models.divisor_fit import list_usual_eps
from normcli.identifying.search.affine_step import enumerate_affine_steps
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from tests.marks import costly


@pytest.mark.slow
@costly
@pytest.mark.parametrize("norm", ["ln", "rms"])
def test_shares_are_those_of_each_attempt_alone_and_bounds_where_they_are_low(norm):
    rng = np.random.default_rng(3)
    x, gamma = rng.normal(0.1, 0.02, (6, 16)).astype("f2"), rng.normal(1.0, 0.3, 16)
    plan = make_plan(Request(norm), x.shape, x.dtype)
    step = next(step for step in enumerate_affine_steps(x.shape, gamma, gamma) if step.way == "gamma, beta")
    affine = tuple(np.broadcast_to(parameter, x.shape) for parameter in (step.scale, step.shift))
    formula = RowFormula.of(plan)._replace(eps=1e-4)
    trial = Trial.take(
        plan, x, parse_computation("pairwise:float16").run(x, formula, x.dtype, affine), step, np.arange(6)
    )
    scored = {
        (computation, eps): float(share)
        for computations, shares in trial.score_all()
        for computation, row in zip(computations, shares, strict=True)
        for eps, share in zip(list_usual_eps(plan.spec.eps), row, strict=True)
    }
    assert len(scored) > 1000
    with np.errstate(all="ignore"):
        for attempt, share in [*scored.items()][::7]:
            alone = float(trial.find_equal(trial.write(*attempt)).mean())
            assert share == alone or alone <= share < max(LEAST_SHARE, *scored.values())
    found = {eps for (_, eps), share in scored.items() if share == 1.0}
    assert 1e-4 in found
    assert 1e-2 not in found
