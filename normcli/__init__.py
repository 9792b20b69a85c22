"""A calculator for normalization: what exactly does this norm do to these numbers.

>>> from normcli import normalize
>>> normalize([[1.0, 2.0], [3.0, 6.0]], "bn", eps=0).normalized
array([[-1., -1.],
       [ 1.,  1.]])
"""

TYPE_CHECKING = False  # in place of `typing`: an import here would run before Ctrl-C can be caught
if TYPE_CHECKING:
    from normcli.auditing.record import record
    from normcli.errors import NormError
    from normcli.library.auditing import audit
    from normcli.library.calculating import Result, normalize
    from normcli.library.fit_tensors import GroupedRows, apply, fit, load, merge, normalize_by
    from normcli.library.judgement import Judgement
    from normcli.library.judging import check, identify
    from normcli.library.restoring import invert
    from normcli.library.statistics import Statistics
    from normcli.library.training import Tracked, track
    from normcli.norms.table import NORMS
    from normcli.quantizing.quantize import Quantized, quantize
    from normcli.results.backward import Gradients, backward
    from normcli.version import __version__

__all__ = [
    "NORMS", "Gradients", "GroupedRows", "Judgement", "NormError", "Quantized", "Result", "Statistics",
    "Tracked", "__version__", "apply", "audit", "backward", "check", "fit", "identify", "invert", "load",
    "merge", "normalize", "normalize_by", "quantize", "record", "track",
]  # fmt: skip

_HOMES = {
    name: module
    for module, names in {
        "normcli.auditing.record": ("record",),
        "normcli.errors": ("NormError",),
        "normcli.library.auditing": ("audit",),
        "normcli.library.calculating": ("Result", "normalize"),
        "normcli.library.fit_tensors": ("GroupedRows", "apply", "fit", "load", "merge", "normalize_by"),
        "normcli.library.judgement": ("Judgement",),
        "normcli.library.judging": ("check", "identify"),
        "normcli.library.restoring": ("invert",),
        "normcli.library.statistics": ("Statistics",),
        "normcli.library.training": ("Tracked", "track"),
        "normcli.norms.table": ("NORMS",),
        "normcli.quantizing.quantize": ("Quantized", "quantize"),
        "normcli.results.backward": ("Gradients", "backward"),
        "normcli.version": ("__version__",),
    }.items()
    for name in names
}
"""Public name → the module it is imported from on first use, so that the command line starts quickly."""


if not TYPE_CHECKING:  # a type checker sees the imports above, and a misspelt name

    def __getattr__(name):
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        globals()[name] = getattr(import_module(home), name)  # so that the name is found directly from now on
        return globals()[name]


def __dir__() -> list[str]:
    return sorted(__all__)
