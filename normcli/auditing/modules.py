"""The norm and the settings of a PyTorch module, by its class and the table of conventions."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from normcli.auditing.dump_file import PARAMETERS, RUNNING, LayerSettings
from normcli.errors import UsageError
from normcli.norms.conventions import CONVENTIONS
from normcli.norms.options import find_option
from normcli.norms.request import Choices, Request, parse_norm_spec
from normcli.norms.rules import AxesRule, ParameterRule
from normcli.norms.table import find_norm
from normcli.numerics.elements.activation import Activation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from normcli.norms.conventions import Convention
    from normcli.norms.norm import Norm

    Shape = tuple[int, ...]

_EPS = ("eps", "variance_epsilon", "epsilon")
"""The names of a module's attribute for eps."""

_OPTIONS = {
    "groups": ("num_groups", "groups"),
    "size": ("size",),
    "alpha": ("alpha",),
    "exponent": ("beta",),
    "k": ("k",),
}
"""Option → the names that modules have for the attribute."""

_FROZEN = "FrozenBatchNorm2d"
"""The end of the names of classes that normalize with stored statistics in training too."""

_FIRST = "LayerNorm2d"
"""The end of the names of classes that normalize over channels, with channels behind the batch axis."""

_GATED = "RMSNormGated"
"""The end of the names of classes that take a gate beside their input."""

_GATES = ("gate", "z")
"""The names that the `forward` of other classes has for a gate."""

_GUESSED = ("RMSNorm", _GATED)
"""The ends of the names of other classes that are taken for Llama's norm."""


NO_GRADIENTS = "gradients were asked for, and none were recorded"
"""The note on a layer that lacks them."""

_NO_AFFINE = "it has no gamma and beta, and a scale and shift behind it are not judged"
"""The note on a layer that was made without them, as for a condition that scales and shifts its result."""

_PRUNED = "_orig"
"""The end of a parameter's name where torch's pruning calculates the attribute of the name before it."""


def find_parameters(module: Any) -> dict[str, str]:
    """Return the attribute that holds a module's gamma (`weight`) and beta (`bias`), by role, if it has one."""
    held = {
        role: [name for name in names if hasattr(getattr(module, name, None), "ndim")]
        for role, names in PARAMETERS.items()
    }
    return {role: names[0] for role, names in held.items() if names}


def looks_like_norm(module: Any, also: Mapping[Any, str]) -> bool:
    """Whether a module's class is a known norm or in `also`, or looks like a norm.

    A module without child modules does if its class has "norm" or "lrn" in its name, or is none of torch's own
    and the module has an eps.
    """
    kind = type(module)
    if kind in also or kind.__name__ in also or _find_row(kind) is not None:
        return True
    has_eps = not kind.__module__.startswith("torch.") and any(hasattr(module, name) for name in _EPS)
    is_named = any(part in kind.__name__.lower() for part in ("norm", "lrn"))
    return (is_named or has_eps) and not list(module.children())


def is_known(module: Any, also: Mapping[Any, str]) -> bool:
    """Whether a module's class is a norm by `also` or the table of conventions."""
    return _find_own(module, also)[0] is not None


def _find_own(
    module: Any, also: Mapping[Any, str]
) -> tuple[str | None, dict[str, Any], Convention | None, str]:
    """Return a module's norm, its options, and without `also` its convention, and a note if that is a guess."""
    kind = type(module)
    given = next((also[key] for key in (kind, kind.__name__) if key in also), None)
    if given is not None:
        spec = parse_norm_spec(given)
        return spec.name, dict(spec.own), None, ""
    row, note = None if _overrides(module) else _find_row(kind), ""
    if row is None and kind.__name__.endswith(_GUESSED):
        row, note = find_named_row("LlamaRMSNorm"), f"{kind.__name__} is taken for rms as in Llama"
    return (None, {}, None, "") if row is None else (row.norm, {"like": row.framework}, row, note)


def describe_module(name: str, module: Any, also: Mapping[Any, str]) -> LayerSettings:
    """Return a module's settings as they are now; for an unknown norm, with a `problem` and `norm` None.

    A known norm has a `problem` too if parameters of the module are neither its gamma nor its beta.

    Parameters
    ----------
    name : str
        The module's name in the model.
    module : torch.nn.Module
    also : mapping
        A class, or a class's name → its norm, such as `rms` or `ln:axes=1`; it comes before the table of
        conventions.
    """
    kind = type(module)
    full = f"{kind.__module__}.{kind.__qualname__}"
    norm, own, row, note = _find_own(module, also)
    if norm is None:
        problem = f"{kind.__name__} is no norm that is known"
        if not kind.__module__.startswith("torch."):
            base = _find_row(kind)
            example = f"also={{'{kind.__name__}': '{'rms' if base is None else base.norm}'}}"
            problem = f"{problem}: name it to record, as in {example}"
        return LayerSettings(name, kind=full, problem=problem)
    row_of_norm = find_norm(norm)[0]
    try:
        known = Request.collect(norm, {**_read_options(module, row_of_norm, row), **own})
        Choices(known)
        held = {*find_parameters(module).values()}
    except (UsageError, TypeError, ValueError) as error:
        return LayerSettings(name, kind=full, problem=str(error))
    own_names = [name for name, value in module._parameters.items() if value is not None]
    strange = ", ".join(name for name in own_names if name.removesuffix(_PRUNED) not in held)
    problem = f"{kind.__name__} has parameters that are not understood: {strange}" if strange else ""
    keeps = all(getattr(module, role, None) is not None for role in RUNNING)
    tracks = keeps and getattr(module, "track_running_stats", True)
    is_frozen = kind.__name__.endswith(_FROZEN)
    learns = bool(module.training) and tracks and not is_frozen
    norm_first = getattr(module, "norm_before_gate", None)
    momentum, counter = getattr(module, "momentum", None), getattr(module, "num_batches_tracked", None)
    if momentum is None:  # torch: batch norm takes the plain average, instance norm does not update
        momentum = "none" if row_of_norm.axes is AxesRule.ALL_BUT_CHANNEL else 0.0
    settings = LayerSettings(
        name, norm, known.describe(),
        evaluation=keeps and (is_frozen or not module.training),
        momentum=momentum if learns else None,
        batches=int(counter) if learns and momentum == "none" and counter is not None else 0,
        kind=full, note=note, is_guess=bool(note),
        problem=problem,
        gate_act=getattr(module, "activation", Activation.SILU.value) if kind.__name__.endswith(_GATED) else "",
        gates_input=None if norm_first is None else not norm_first,
    )  # fmt: skip
    return settings if getattr(module, "elementwise_affine", True) else settings.add_note(_NO_AFFINE)


def describe_further(
    settings: LayerSettings, module: Any, further: Mapping[Any, tuple[str, Shape]], shape: Shape
) -> tuple[LayerSettings, dict[Any, str]]:
    """Return a module's settings with its further tensors, and their roles: gate, weight or bias.

    A tensor without a role is `left_out`.

    Parameters
    ----------
    settings : LayerSettings
    module : torch.nn.Module
    further : mapping
        Any key → the name of the tensor in the module's `forward`, and its shape.
    shape : tuple of int
        The shape of the input.
    """
    norm, roles = find_norm(settings.norm or "")[0], dict[Any, str]()
    act, is_asked = getattr(module, "activation", None), find_named_row(type(module).__name__) is None
    for key, (name, own) in further.items():
        role = next((role for role, names in PARAMETERS.items() if name in names), None)
        axes = align(own, shape)
        if "gate" not in roles.values() and (settings.gate_act or (name in _GATES and own == shape)):
            known = act if isinstance(act, str) and act in {*Activation} else Activation.SILU.value
            settings = settings._replace(gate_act=settings.gate_act or known)
            roles[key] = "gate"
        elif role is None or not axes or role in find_parameters(module):
            settings = settings._replace(left_out=settings.left_out or name)
        else:
            roles[key] = role
            if find_option("feature_axes").belongs_to(norm):
                settings = settings.add_option("feature_axes", [*axes])
            if role == "weight" and is_asked and "gamma_offset" not in settings.options:
                words = f"{name} is taken for gamma (1 + gamma is gamma-offset=1)"
                settings = settings.add_note(words)._replace(is_guess=True)
    return (settings if "gate" in roles.values() else settings._replace(gate_act="", gates_input=None)), roles


def align(own: Shape, shape: Shape) -> tuple[int, ...]:
    """Return the axes of an input that a tensor varies along; empty if none, or if it does not fit.

    A tensor of fewer axes has the first ones and the last one, as of a condition for each sample, or the last.

    Examples
    --------
    >>> align((2, 1, 16), (2, 12, 16)), align((2, 16), (2, 12, 16)), align((16,), (2, 12, 16))
    ((0, 2), (0, 2), (2,))
    """
    few, rank = len(own), len(shape)
    for axes in ((*range(few - 1), rank - 1), (*range(rank - few, rank),)) if 0 < few <= rank else ():
        if all(length in (1, shape[axis]) for length, axis in zip(own, axes, strict=True)):
            return tuple(axis for length, axis in zip(own, axes, strict=True) if length == shape[axis])
    return ()


def _overrides(module: Any) -> bool:
    """Whether a module's class is unknown and replaces the `forward` of a known class that it inherits from."""
    kind = type(module)
    is_alike = kind.__name__.endswith((_FROZEN, _FIRST)) or hasattr(module, _ORDERED)
    return not is_alike and find_base(kind) is not None and find_base(kind, "forward") is None


_ORDERED = "data_format"
"""The attribute of classes that put channels first or last, and differ from their base in nothing else."""


def _read_options(module: Any, norm: Norm, row: Convention | None) -> dict[str, Any]:
    """Return the options of a norm that a module's attributes hold: eps, sizes and axes, by name.

    `row` is the convention of the module's class, None without one; if it fixes the axes, the attribute
    `normalized_shape` is not read.
    """
    found = read_numbers(module, norm)
    if row is not None and norm.parameters is ParameterRule.KEPT and hasattr(module, "dim"):
        found["keep"] = module.dim
    shape = getattr(module, "normalized_shape", None)
    if getattr(module, "data_format", None) == "channels_first":
        found["axes"] = (1,)
    elif shape is not None and (row is None or row.axes is None):
        found["axes"] = tuple(range(-len(shape), 0)) if isinstance(shape, tuple | list) else (-1,)
    lengths = getattr(getattr(module, find_parameters(module).get("weight", ""), None), "shape", ())
    if shape is None and norm.parameters is ParameterRule.REDUCED and len(lengths) > 1 and 1 not in lengths:
        found["feature_axes"] = tuple(range(-len(lengths), 0))  # a gamma for each head
    return found


def read_numbers(module: Any, norm: Norm) -> dict[str, Any]:
    """Return the options of a norm that a module's attributes hold as numbers, such as eps and groups."""
    eps = next((value for name in _EPS if (value := getattr(module, name, None)) is not None), None)
    found: dict[str, Any] = {} if eps is None else {"eps": float(eps)}
    for option, names in _OPTIONS.items():
        value = next((getattr(module, name) for name in names if hasattr(module, name)), None)
        if isinstance(value, int | float) and find_option(option).belongs_to(norm):
            found[option] = value
    return found


def _find_row(kind: type) -> Convention | None:
    """Return the row of conventions for a class or its nearest known base class; None if there is none."""
    end = next((end for end in (_FROZEN, _FIRST) if kind.__name__.endswith(end)), None)
    return find_base(kind) if end is None else find_named_row(end)


def find_base(kind: Any, method: str | None = None, layers_of: str | None = None) -> Convention | None:
    """Return the row of conventions for a class or its nearest known base; None if there is none.

    With the name of a method, also None if the class replaces that base's method. `layers_of` is as in
    `find_named_row`.
    """
    for base in kind.__mro__:
        row = find_named_row(base.__name__, layers_of)
        if row is not None:
            is_own = method is None or getattr(kind, method, None) is getattr(base, method, None)
            return row if is_own else None
    return None


@functools.cache
def find_named_row(name: str, layers_of: str | None = None) -> Convention | None:
    """Return the row of conventions for a class by its name; None if there is none.

    `layers_of` is `keras` or `flax-linen` for a class of their layers, None for PyTorch's modules.
    """
    rows = (row for row in CONVENTIONS if name in row.modules)
    own = (row for row in rows if (row.framework if row.framework in _LAYERED else None) == layers_of)
    return next(own, None)


_LAYERED = ("keras", "flax-linen")
"""The frameworks whose rows of conventions name layers of their own, not PyTorch's modules."""


def require_norms(also: Mapping[Any, str]) -> None:
    """Raise `UsageError` unless `also` maps classes, or their names, to norms, as `{"MyNorm": "rms"}`."""
    if not hasattr(also, "items"):
        raise UsageError(f"also {also!r} is no mapping of a class to its norm")
    for kind, text in also.items():
        if not isinstance(kind, type | str) or not isinstance(text, str):
            raise UsageError(f"also: {kind!r}: {text!r} is no class and its norm, as MyNorm: 'rms'")
        parse_norm_spec(text)
