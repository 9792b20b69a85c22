"""What statistics are of: which names they keep, and for which tensors they can be merged."""

from __future__ import annotations

import numpy as np

from normcli.fitting.subject import choose_subject
from normcli.norms.request import Request
from normcli.tensors.tensor import Tensor


def test_columns_have_names_where_they_are_no_samples():
    tensor = Tensor(np.arange(6.0).reshape(3, 2), "x.npy", columns=("a", "b"))
    assert choose_subject(Request("bn"), tensor).columns == ("a", "b")
    assert choose_subject(Request("bn", layout="CN"), tensor).columns is None
