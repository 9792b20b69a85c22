"""A calculator for normalization: what exactly does this norm do to these numbers.

>>> from normcli import normalize
>>> normalize([[1.0, 2.0], [3.0, 6.0]], "bn", eps=0).normalized
array([[-1., -1.],
       [ 1.,  1.]])
"""

from __future__ import annotations

from normcli.version import __version__

TYPE_CHECKING = False  # as in `typing`, whose import would come before anything can catch Ctrl-C
if TYPE_CHECKING:
    from normcli.errors import NormError
    from normcli.norms.table import NORMS
    from normcli.results.backward import Gradients, backward
    from normcli.results.result import Result, normalize

__all__ = ["NORMS", "Gradients", "NormError", "Result", "__version__", "backward", "normalize"]

_HOMES = {
    "Gradients": "normcli.results.backward",
    "NORMS": "normcli.norms.table",
    "NormError": "normcli.errors",
    "Result": "normcli.results.result",
    "backward": "normcli.results.backward",
    "normalize": "normcli.results.result",
}
"""Where each public name lives; it is imported on first use, so that the command line starts quickly."""


if not TYPE_CHECKING:  # a type checker sees the imports above, and a misspelt name

    def __getattr__(name):
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
