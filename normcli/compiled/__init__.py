"""The compiled kernel: the same bits as `normcli.numerics`, in C, where a compiler was there to build it.

Each result has one right value, so the C may go ways of its own; what follows a Python function names it.
`NORMCLI_KERNEL` chooses: `numpy`, `compiled`, or whichever is there.
"""

from __future__ import annotations

import functools
import importlib
import os
from typing import TYPE_CHECKING, Any

from normcli.errors import UsageError
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Container

VARIABLE = "NORMCLI_KERNEL"
"""The environment variable that chooses the kernel."""

_VARIABLES: Container[Any] = vars(os.environ).get("_data", os.environ)
"""The names in `os.environ` as it holds them, `_KEY` among them if that is set: to look one up in `os.environ`
itself takes a twentieth of a small tensor's norm."""

_KEY: Any = VARIABLE if _VARIABLES is os.environ else os.environ.encodekey(VARIABLE)

NUMPY, COMPILED = "numpy", "compiled"

_MODULE = "_normcli_kernel"
"""The extension module, beside the package: so a checkout finds the one that was installed from its sources."""

STAMP = os.path.join(os.path.dirname(__file__), "stamp.h")  # noqa: PTH118, PTH120  # pathlib is slow to import
"""The file that identifies the C sources, as the built module does; `python -m tests.compiled` renews it."""


class Kernel(NamedTuple):
    """The compiled kernel, and which of its variants is used.

    Parameters
    ----------
    module : module
        The extension module. Its functions take `variant` first. `normalize` normalizes or measures groups, and
        returns how many values it leaves to be calculated in pairs of doubles. `round_codes` returns the
        largest error, how many values were cut off at the largest code, how many became 0, and whether any was
        halfway between codes. `find_largest` writes the largest |y| of each run of values.
    variant : int
        The number of one of the processor's instruction sets; results are the same bits with each.
    """

    module: Any
    variant: int

    @property
    def name(self) -> str:
        """The name of the variant."""
        return next(name for name, number in list_variants(self.module).items() if number == self.variant)


def find_kernel() -> Kernel | None:
    """Return the compiled kernel; None if NumPy is used in its place.

    NumPy is used if the environment variable `NORMCLI_KERNEL` is `numpy`, or if it is not set and no kernel was
    built from these sources.

    Raises
    ------
    UsageError
        If `NORMCLI_KERNEL` is neither `numpy` nor `compiled`, or is `compiled` and there is no compiled kernel.
    """
    if _KEY not in _VARIABLES:
        return _load()
    wanted = os.environ.get(VARIABLE, "")
    if wanted == NUMPY:
        return None
    if wanted not in ("", COMPILED):
        raise UsageError(f"{VARIABLE} is {wanted!r}; it takes {NUMPY} or {COMPILED}")
    kernel = _load()
    if kernel is None and wanted == COMPILED:
        raise UsageError(
            f"{VARIABLE}={COMPILED}, but the compiled kernel is not there: install normcli where there is "
            f"a C compiler, or set {VARIABLE}={NUMPY}"
        )
    return kernel


@functools.cache
def _load() -> Kernel | None:
    """Return the compiled kernel with the best variant that this processor runs; or None.

    None if the extension module cannot be imported, or was built from other C sources than those here.
    """
    try:
        module = importlib.import_module(_MODULE)
    except ImportError:
        return None
    with open(STAMP) as stream:  # noqa: PTH123
        if f'"{module.STAMP}"' != stream.read().strip():
            return None
    return Kernel(module, min(list_variants(module).values()))


def list_variants(module: Any) -> dict[str, int]:
    """Return the numbers of the kernel's variants that this processor runs, by their names."""
    return {name: number for name, number in vars(module).items() if isinstance(number, int)}


def describe_kernel() -> str:
    """Return the name of the kernel that runs: `numpy kernel`, or `compiled kernel, ` and its variant."""
    kernel = find_kernel()
    return f"{NUMPY} kernel" if kernel is None else f"{COMPILED} kernel, {kernel.name}"
