"""Tensors of which it is known what made them: what `identify` says of each is held against the truth.

- `plant`: a question with its answer, and the outcomes
- `judgement`: what `identify` says of it, as an outcome
- `frameworks`: what live frameworks made, of data at several distances from 0
- `algorithms`: what the algorithms of the table made, whose sums are not exact
- `kernels`: what kernels in NumPy made of data off centre
- `outside`: evaluations with running statistics, and maps that are no norm
- `not_norms`: these maps
- `faults`: tables of wrong kernels, by what is wrong
- `wrong_kernels`: what these made, as `check` and as `identify` ask
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.plants.algorithms import ALGORITHM, HALF_SUMS, list_algorithms, list_sums_of_half_precision
from tests.plants.faults import TABLE
from tests.plants.frameworks import KINDS, OFF_CENTRE, SINGLE, list_batches_of_1, list_far, list_plants
from tests.plants.kernels import KERNEL, list_kernels
from tests.plants.outside import EVALUATION, MAP, list_evaluations, list_maps
from tests.plants.wrong_kernels import CHECKED, IDENTIFIED, list_checked, list_identified

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.plants.plant import Plant

LISTS = (
    (KINDS, list_plants),
    ((OFF_CENTRE,), list_far),
    ((SINGLE,), list_batches_of_1),
    ((EVALUATION,), list_evaluations),
    ((MAP,), list_maps),
    ((HALF_SUMS,), list_sums_of_half_precision),
    ((ALGORITHM,), list_algorithms),
    ((KERNEL,), list_kernels),
    ((CHECKED,), list_checked),
    ((IDENTIFIED,), list_identified),
)
"""The kinds of plants, and what yields them."""


def list_all(chosen: Sequence[str] = ()) -> Iterator[Plant]:
    """Yield the plants whose kind, or whose fault's id, begins with one of these; every plant, without any.

    Raises
    ------
    ValueError
        If no kind or fault begins with one of them.
    """
    known = [*(kind for kinds, _ in LISTS for kind in kinds), *sorted({row.ids[0] for row in TABLE})]
    unknown = [name for name in chosen if not any(word.startswith(name) for word in known)]
    if unknown:
        raise ValueError(f"no plant is of {', '.join(unknown)}; known are: {'; '.join(known)}")
    for kinds, make in LISTS:
        named = {name for name in chosen if any(kind.startswith(name) for kind in kinds)}
        if chosen and not named and CHECKED not in kinds:
            continue  # which saves the start of the frameworks
        for plant in make():
            names = (plant.kind, *(() if plant.wrong is None else plant.wrong.ids[:1]))
            if not chosen or any(name.startswith(tuple(chosen)) for name in names):
                yield plant
