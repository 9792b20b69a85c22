"""Assertions on results, gradients and models: a difference from the exact values fails with the report."""

from __future__ import annotations

import functools
import math
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from normcli.auditing.record import record
from normcli.checking.check import NORMALIZED
from normcli.checking.ulp import choose_counting_dtype, choose_tolerance
from normcli.documents.document import View
from normcli.errors import DataError, UsageError
from normcli.library.auditing import audit
from normcli.library.judgement import judge, judge_gradients
from normcli.printable import agree, format_count
from normcli.results.arguments import read_arguments, read_numbers
from normcli.results.backward import require_derivative
from normcli.results.normalize import require_options
from normcli.tensors.tensor import Tensor
from normcli.testing.declared_algorithm import (
    derive_bounds,
    derive_gradient_bounds,
    describe_void,
    read_declared,
    tolerate_derived,
)
from normcli.writers.table import format_text

if TYPE_CHECKING:
    import os

    import numpy as np
    from numpy.typing import ArrayLike, DTypeLike, NDArray

    from normcli.checking.tally import Comparison
    from normcli.documents.document import Document
    from normcli.dtypes import Floats
    from normcli.norms.plan import Plan
    from normcli.results.arguments import Problem


_WIDTH = 76
"""The width of a report in columns: pytest puts four before each line, and a terminal has 80."""


def assert_matches(
    actual: ArrayLike,
    x: ArrayLike,
    norm: str = "bn",
    *,
    max_ulp: float | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    accumulate: DTypeLike | None = None,
    algorithm: str | None = None,
    cast: str | None = None,
    **options: Any,
) -> None:
    """Fail unless an array is the norm of another.

    Parameters
    ----------
    actual : array_like
        A kernel's result for `x`: of the shape of `x`, and of the dtype `dtype` if that is given, otherwise of
        the dtype of `x` (float64 for integers).
    x : array_like
        The tensor that was normalized. Both may be arrays of NumPy, torch, JAX, CuPy or another library.
    norm : str
        A name of the table `normcli.NORMS`, or an alias of one.
    max_ulp : float, optional
        The largest error of a value, in units in the last place of the output's dtype at the exact value. A
        value that is rounded once has an error of at most 0.5.
    rtol, atol : float, optional
        The largest error as atol + rtol · |exact|, in place of `max_ulp`. If none of the three is given, the
        tolerances are those of torch's `assert_close` for the dtype (`normcli.checking.ulp.choose_tolerance`).
    accumulate : {"float16", "bfloat16", "float32", "float64"} or dtype, optional
        The dtype of the kernel's sums. If it is given, the largest error of each value is derived from the
        roundings of such a kernel on these data (`normcli.algorithms.moment_bounds`).
    algorithm, cast : str, optional
        The kernel's algorithm for the variance, as `one-pass` or `welford` (default: `two-pass`, with sums in
        any order), and its order of casts, as `once` (the default) or `before gamma`: names in
        `normcli.algorithms.table`.
    **options
        The options of `normcli.normalize`, by the same names and with the same defaults: `like`, `gamma`, ….

    Raises
    ------
    AssertionError
        If a value, the shape or the dtype differs; if the declared algorithm has no bound for a group, as one
        pass where the mean is far above the spread. The message is the report of `normcli check`: the worst
        value, its index and its group, a histogram of errors in ulp, and the convention or the fault that
        explains them, if one does.
    NormError
        If an argument is not valid.

    Notes
    -----
    With two passes in float32 over n values, the mean has an error of at most E = γ · mean|x|, the variance of
    F = γ · var + E², x̂ of E/√var + |x̂| · F/(2 var) and the roundings after that, and y of half a unit of its
    dtype more. γ is k · 2⁻²⁴ / (1 − k · 2⁻²⁴) with k = n and a few more.

    References
    ----------
    Higham 2002, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 1.9, 2.2 and 4.2. Chan, Golub
    & LeVeque 1983, Algorithms for computing the sample variance, The American Statistician 37(3).

    Examples
    --------
    >>> x = [[1.0, 2.0, 6.0]]
    >>> assert_matches([[-0.9258, -0.4629, 1.3887]], x, "ln", eps=0, atol=1e-4, rtol=0)
    >>> try:
    ...     assert_matches([[-0.75, -0.375, 1.125]], x, "ln", eps=0, max_ulp=2)
    ... except AssertionError as error:
    ...     print(str(error).splitlines()[0])
    ln: 3 of 3 values differ, by up to 1.584e+15 ulp of float64
    """
    __tracebackhide__ = True
    asked = _read("assert_matches", x, norm, options)
    plan, values, array = asked.plan, asked.values, read_numbers(actual, "actual")
    expected = plan.choose_output_dtype(values.dtype)
    if array.shape != plan.grid.shape:
        raise AssertionError(f"{plan.norm.name}: actual has the shape {array.shape}; x has {plan.grid.shape}")
    _require_dtype(plan, "actual", array, expected, is_array=hasattr(actual, "dtype"))
    tolerate = functools.partial(choose_tolerance, rtol=rtol, atol=atol, max_ulp=max_ulp)
    allowed = None
    declared = read_declared(accumulate, algorithm, cast, (max_ulp, rtol, atol))
    if declared is not None:
        allowed, void = derive_bounds(declared, asked)
        if void.size:
            raise AssertionError(describe_void(declared, asked, void))
        tolerate = functools.partial(tolerate_derived, declared.name)
    judgement = judge(asked, {NORMALIZED: Tensor(array, "actual")}, tolerate, allowed)
    if not judgement:
        _fail(plan, judgement.found.comparisons, judgement.document)


def assert_backward_matches(
    dx: ArrayLike | None,
    x: ArrayLike,
    dy: ArrayLike,
    norm: str = "bn",
    *,
    dgamma: ArrayLike | None = None,
    dbeta: ArrayLike | None = None,
    max_ulp: float | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    accumulate: DTypeLike | None = None,
    algorithm: str | None = None,
    **options: Any,
) -> None:
    """Fail unless arrays are the gradients of a norm's backward pass for dy.

    Parameters
    ----------
    dx : array_like or None
        The derivative of the loss with respect to `x`, of the shape of `x`; None: it is not checked.
    x, dy : array_like
        The tensor that was normalized, and the derivative of the loss with respect to the normalized tensor. A
        dy of ones, or one proportional to x̂, hides terms of dx; that of `provocations` hides none.
    norm : str
        A name of the table `normcli.NORMS`, or an alias of one.
    dgamma, dbeta : array_like, optional
        The derivatives with respect to gamma and beta, of the shape of the parameters; axes of length 1 may be
        left out.
    max_ulp, rtol, atol : float, optional
        The largest error, as in `assert_matches`. Where terms cancel, a small error of a term is many ulp: rtol
        and atol are of more use than max_ulp. If none is given, atol is smaller for smaller gradients.
    accumulate : str or dtype, optional
        The dtype of all operations of the backward pass. If it is given, the largest error of each value is
        derived from the roundings of such a pass on these data (`normcli.algorithms.element_bounds`).
    algorithm : str, optional
        The algorithm for the variance, as in `assert_matches`.
    **options
        The options of `normcli.normalize`, by the same names and with the same defaults.

    Raises
    ------
    AssertionError
        If a value, a shape or a dtype differs. The report says how dx, dgamma or dbeta is wrong if one fault
        explains it: a term left out or taken twice, a sign, other axes, part of the batch.
    NormError
        If an argument is not valid, the norm has no derivative, or there is nothing to check.

    Examples
    --------
    >>> x, dy = [[1.0, 2.0, 3.0]], [[1.0, 0.0, 0.0]]
    >>> assert_backward_matches([[0.2041, -0.4082, 0.2041]], x, dy, "ln", eps=0, atol=1e-3)
    >>> try:
    ...     assert_backward_matches([[-0.2041, 0.4082, -0.2041]], x, dy, "ln", eps=0, atol=1e-3)
    ... except AssertionError as error:
    ...     print("dx: its sign is turned." in str(error))
    True
    """
    __tracebackhide__ = True
    asked = _read("assert_backward_matches", x, norm, options)
    plan, values, dy = asked.plan, asked.values, read_numbers(dy, "dy")
    require_derivative(plan)
    if dy.shape != values.shape:
        raise DataError(f"dy has the shape {dy.shape}; it takes that of x, {values.shape}")
    given = {name: a for name, a in (("dx", dx), ("dgamma", dgamma), ("dbeta", dbeta)) if a is not None}
    if not given:
        raise UsageError("there is nothing to check: give dx, dgamma or dbeta")
    arrays = {name: read_numbers(array, name) for name, array in given.items()}
    _require_shapes(plan, arrays)
    if "dx" in arrays:
        expected = plan.choose_output_dtype(values.dtype)
        _require_dtype(plan, "dx", arrays["dx"], expected, is_array=hasattr(dx, "dtype"))
    tolerate = functools.partial(choose_tolerance, rtol=rtol, atol=atol, max_ulp=max_ulp)
    allowed: dict[str, Floats] = {}
    declared = read_declared(accumulate, algorithm, limits=(max_ulp, rtol, atol))
    if declared is not None:
        dtypes = {name: choose_counting_dtype(array.dtype) for name, array in arrays.items()}
        allowed, void = derive_gradient_bounds(declared, asked, dy, dtypes)
        if void.size:
            raise AssertionError(describe_void(declared, asked, void))
        tolerate = functools.partial(tolerate_derived, declared.name)
    actual = {name: Tensor(array, "actual") for name, array in arrays.items()}
    judgement = judge_gradients(asked._replace(dy=Tensor(dy, "dy")), actual, tolerate, allowed)
    if not judgement:
        _fail(plan, judgement.found.comparisons, judgement.document)


def _read(function: str, x: ArrayLike, norm: str, options: Mapping[str, Any]) -> Problem:
    """Return the arguments; raise `NormError` for one that is not valid or that `function` does not take."""
    require_options(function, options, but=("out",))
    return read_arguments(x, norm, options)


def _require_dtype(
    plan: Plan, name: str, actual: NDArray[Any], expected: np.dtype[Any], *, is_array: bool
) -> None:
    """Raise `AssertionError` if an array has another dtype than the one expected.

    Nothing is raised unless `is_array`: a list has no dtype. `name` is the argument's name in the message.
    """
    __tracebackhide__ = True
    if is_array and actual.dtype.newbyteorder("=") != expected:
        norm, found = plan.norm.name, actual.dtype.name
        asked = f"{norm} of {plan.tensor_dtype.name} gives {expected.name}"
        raise AssertionError(f"{norm}: {name} is {found}; {asked} (dtype={found!r} says otherwise)")


def _require_shapes(plan: Plan, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raise `AssertionError` if a gradient has another shape than x, gamma or beta, axes of length 1 aside."""
    __tracebackhide__ = True
    for name, array in arrays.items():
        expected = plan.grid.shape if name == "dx" else plan.parameters.shape
        if [n for n in array.shape if n != 1] != [n for n in expected if n != 1]:
            raise AssertionError(f"{plan.norm.name}: {name} has the shape {array.shape}; it takes {expected}")


def _fail(plan: Plan, comparisons: Mapping[str, Comparison], report: Document) -> NoReturn:
    """Raise `AssertionError` with a line that counts the mismatches, and the report below it.

    Summaries of test runners show the first line alone.
    """
    __tracebackhide__ = True
    several = len(comparisons) > 1 or NORMALIZED not in comparisons
    wrong = [
        f"{f'{name}: ' if several else ''}{found.mismatches:,} of {format_count(found.compared, 'value')} "
        f"{agree(found.mismatches, 'differs', 'differ')}, {_tell_distance(found)}"
        for name, found in comparisons.items()
        if not found.ok
    ]
    text = format_text(report, View(width=_WIDTH))
    raise AssertionError(f"{plan.norm.name}: {'; '.join(wrong)}\n\n{text}\n")


def _tell_distance(found: Comparison) -> str:
    """Return words on the largest distance: `by up to 12.5 ulp of float32`, or `some infinitely far`."""
    if math.isinf(found.max_ulp):
        return "some infinitely far"
    return f"by up to {found.max_ulp:.4g} ulp of {found.tolerance.dtype.name}"


def assert_model_matches(
    model: Any, batch: Any, *, also: Mapping[type | str, str] | None = None, **options: Any
) -> None:
    """Fail unless every norm of a PyTorch model has the exact output, to tolerances, on a batch.

    Parameters
    ----------
    model : torch.nn.Module
    batch : tensor, tuple or mapping
        The arguments of the model: a tensor, a tuple of positional ones, or a mapping of named ones.
    also : mapping, optional
        A class of your own, or its name → the norm that it is, such as `{MyNorm: "rms"}`.
    **options
        Options of `normcli.audit`: `only`, `skip`, `rtol`, `atol`, `max_ulp`.

    Raises
    ------
    AssertionError
        If a norm differs, or could not be judged. The message is the report of `normcli audit`.
    NormError
        If an argument is not valid, or the model has no known norm that ran.
    """
    __tracebackhide__ = True
    with tempfile.TemporaryDirectory() as folder:
        dump = Path(folder) / "dump.safetensors"
        with record(model, dump, also=also):
            if isinstance(batch, Mapping):
                model(**batch)
            else:
                model(*batch if isinstance(batch, tuple) else (batch,))
        _require(audit(dump, **options))


def assert_runs_match(first: str | os.PathLike[str], second: str | os.PathLike[str], **options: Any) -> None:
    """Fail unless two recorded runs of a model agree at every norm.

    Parameters
    ----------
    first, second : path
        Files that `normcli.record` wrote.
    **options
        Options of `normcli.audit`: `only`, `skip`, `rtol`, `atol`, `max_ulp`.

    Raises
    ------
    AssertionError
        If the runs differ. The message names the first norm whose inputs agree and whose outputs do not.
    NormError
        If a file cannot be read, an option is not valid, or the runs have no norm in common.
    """
    __tracebackhide__ = True
    _require(audit(first, against=second, **options))


def _require(judgement: Any) -> None:
    """Raise `AssertionError`, with the last line of the report first, if a judgement is false."""
    __tracebackhide__ = True
    if not judgement:
        lines = str(judgement).splitlines()
        raise AssertionError("\n".join([lines[-1].strip(), "", *lines]))
