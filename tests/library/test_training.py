"""Running statistics in Python: those that the command line keeps, and torch."""

import numpy as np
import pytest

from normcli import normalize, track
from normcli.errors import NormError

X = np.random.default_rng(0).normal(2.0, 3.0, (4, 3, 5))


def test_a_batch_is_averaged_as_the_command_line_does(normcli, here):
    mean = var = None
    for number, x in enumerate((X, X + 1.0)):
        np.save(f"x{number}.npy", x)
        assert normcli("bn", "-i", f"x{number}.npy", "--state", "s.npz", "--momentum", "0.3").code == 0
        step = track(x, "bn", running_mean=mean, running_var=var, momentum=0.3)
        mean, var = step.running_mean, step.running_var
    with np.load("s.npz") as kept:
        np.testing.assert_array_equal(mean, kept["mean"])
        np.testing.assert_array_equal(var, kept["var"])
    np.testing.assert_array_equal(step.result.normalized, normalize(X + 1.0, "bn").normalized)


@pytest.mark.parametrize(
    ("norm", "options", "message"),
    [
        ("ln", {}, "ln keeps no running statistics; bn and in do"),
        ("bn", {"running_mean": [0, 0, 0]}, "running_mean and running_var go together"),
        ("bn", {"momentum": 2}, r"momentum 2 is not from 0 to 1 \(or none, for the cumulative average\)"),
        ("bn", {"running_mean": [0, 0], "running_var": [1, 1]}, r"running_mean has the shape \(2,\).*"),
        ("bn", {"strict": True}, "track has no option 'strict'"),
    ],
)
def test_what_is_refused(norm, options, message):
    with pytest.raises(NormError, match=f"^{message}$"):
        track(X, norm, **options)


def test_a_batch_of_one_value_names_the_argument(monkeypatch):
    monkeypatch.setattr(NormError, "_names_options", False)
    with pytest.raises(NormError, match=r"running statistics need more \(or running_ddof 0\)$"):
        track([[1.0, 2.0]])
