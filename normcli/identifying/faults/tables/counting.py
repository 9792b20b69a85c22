"""Faults in which values the statistics of a group are of, and in how many there are."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.checking.fault import Fault
from normcli.identifying.faults.claim import Row
from normcli.identifying.faults.variant import NEAR, Variant, is_near, list_shifts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from normcli.dtypes import Floats
    from normcli.identifying.faults.case import Case

_BLOCKS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
"""Lanes of processors and blocks of kernels."""

_MOST_PARTS = 64
"""A batch or a row is shared out among no more."""


def _list_paddings(case: Case) -> list[int]:
    """Return how many zeros may stand behind each group: up to a power of two, or to whole blocks."""
    n = case.count
    ends = {1 << max(0, n - 1).bit_length(), *(-n % block + n for block in _BLOCKS)}
    found = {end - n for end in ends if n < end <= 4 * n}
    if case.centres:  # each adds the square of the mean
        with np.errstate(all="ignore"):
            excess = (case.unroot(case.used.divisor, case.square) - case.eps) * case.freedom / case.own_mean**2
        solved = float(np.median(excess))
        found |= {round(solved)} if 0.5 < solved < 4 * n else set()
    return sorted(found)


def _pad_variance(case: Case) -> Iterator[Variant]:
    if case.centres:
        for count in _list_paddings(case):
            total = case.square * case.freedom + count * case.own_mean**2
            for divided in (case.freedom, case.freedom + count):
                yield Variant(square=total / divided, values={"count": count}, numbers=1)


def _pad_mean(case: Case) -> Iterator[Variant]:
    if case.centres:
        for count in _list_paddings(case):
            mean = case.own_mean * (case.count / (case.count + count))
            yield Variant(mean, case.divisor, values={"count": count}, numbers=1)
            yield Variant(mean, square=case.measure_square(mean), values={"count": count}, numbers=1)


def _pad_both(case: Case) -> Iterator[Variant]:
    for count in _list_paddings(case):
        share = case.count / (case.count + count)
        if not case.centres:
            yield Variant(square=case.square * share, values={"count": count}, numbers=1)
            continue
        mean = case.own_mean * share
        square = case.measure_square(mean)
        whole = (square * case.freedom + count * mean**2) / (case.freedom + count)
        added = square + count * mean**2 / case.freedom
        for one in (whole, added, square * case.freedom / (case.freedom + count), case.square * share):
            yield Variant(mean, square=one, values={"count": count}, numbers=1)


def _miscount(case: Case) -> Iterator[Variant]:
    """Divide the sums by another number than n: n ± 1, or what y shows."""
    n, counts = case.count, {case.count - 1, case.count + 1}
    with np.errstate(all="ignore"):
        solved = float(np.median(case.square * case.freedom / (case.used.divisor**2 - case.eps)))
        of_mean = float(np.median(n * case.own_mean / case.used.mean)) if case.centres else math.nan
    counts |= {round(value) for value in (solved, of_mean) if n / 2 < value < 2 * n}
    for count in sorted(counts - {0}):
        values: dict[str, object] = {"count": count, "n": n}
        of_square = {"count": count, "n": f"{case.freedom:g}", "what": "the squares"}
        if count != case.freedom and not (case.centres and count in (n - 1, n)):  # which ddof says
            square = case.square * case.freedom / count
            yield Variant(square=square, values=of_square, numbers=1)
        values["what"] = "the values"
        if case.centres and count != n:
            mean = case.own_mean * (n / count)
            yield Variant(mean, case.divisor, values=values, numbers=1)
            yield Variant(mean, square=case.measure_square(mean), values=values, numbers=1)


def _list_lines(case: Case) -> Iterator[tuple[str, Floats]]:
    """Yield the values of each group in a row, and along each reduced axis, which comes last."""
    kept = [axis for axis in range(case.x.ndim) if axis not in case.axes]
    rows = case.x.transpose(*kept, *case.axes)
    shape = rows.shape[: len(kept)]
    wide = [place for place, axis in enumerate(case.axes) if case.x.shape[axis] > 1]
    name = case.name_axis(case.axes[wide[0]]) if len(wide) == 1 else "a group"
    yield name, rows.reshape(*shape, 1, -1)
    if len(wide) > 1:
        for place in wide:
            moved = np.moveaxis(rows, len(kept) + place, -1)
            yield case.name_axis(case.axes[place]), moved.reshape(*shape, -1, moved.shape[-1])


def _skip_part(case: Case, *, keeps_count: bool) -> Iterator[Variant]:
    """Take the first k values along some axis alone; the sums are divided by k, or by n all the same."""
    shape = [1 if axis in case.axes else n for axis, n in enumerate(case.x.shape)]
    for name, lines in _list_lines(case):
        length, across = lines.shape[-1], lines.shape[-2]
        counts = across * np.arange(1.0, length + 1.0)
        divided = np.full_like(counts, case.count) if keeps_count else counts
        sums, squares = (np.cumsum(values.sum(-2), -1) for values in (lines, lines**2))
        mean = sums / divided if case.centres else np.zeros_like(sums)
        own = (case.own_mean if case.centres else np.zeros_like(case.own_mean)).reshape(*mean.shape[:-1], 1)
        with np.errstate(all="ignore"):
            both = (squares - 2.0 * mean * sums + counts * mean**2) / divided
            alone = (squares - 2.0 * own * sums + counts * own**2) / divided
        target = (case.used.divisor**2).reshape(*mean.shape[:-1], 1)
        whole = np.broadcast_to(own, alone.shape)
        for means, found in ((mean, both), (whole, alone), (whole, both)):
            with np.errstate(all="ignore"):
                off = np.median(np.abs((found + case.eps) / target - 1.0).reshape(-1, length), axis=0)
            for k in np.argsort(off)[:2]:
                if 0 < k + 1 < length and off[k] < NEAR:
                    part, skipped = int(k) + 1, length - int(k) - 1
                    values = {"part": part, "length": length, "skipped": skipped, "name": name}
                    yield Variant(
                        means[..., k].reshape(shape),
                        square=found[..., k].reshape(shape),
                        values=values,
                        numbers=1,
                    )


def _list_divisions(case: Case) -> Iterator[tuple[int, int]]:
    """Yield each reduced axis of the view, and into how many equal parts it may be shared out."""
    for axis in case.axes:
        length = case.x.shape[axis]
        for parts in range(2, min(length - 1, _MOST_PARTS) + 1):
            if length % parts == 0:
                yield axis, parts


def _share_out(case: Case, axis: int, parts: int) -> tuple[Floats, Floats, int, tuple[int, ...]]:
    """Return mean and square of each part of an axis, at a rank with one axis more; that axis; the shape."""
    shape = (*case.x.shape[:axis], parts, case.x.shape[axis] // parts, *case.x.shape[axis + 1 :])
    axes = tuple(other + (other >= axis) for other in case.axes)
    x = case.x.reshape(shape)
    mean = x.mean(axes, keepdims=True) if case.centres else np.zeros([1] * x.ndim)
    count = case.count / parts
    square = ((x - mean) ** 2).sum(axes, keepdims=True) / max(1.0, count - (case.count - case.freedom))
    return mean, square, axis, shape


def _shard(case: Case) -> Iterator[Variant]:
    """Take each part of an axis by itself, or all with the statistics of one part."""
    for axis, parts in _list_divisions(case):
        mean, square, place, shape = _share_out(case, axis, parts)
        wide = (*case.x.shape[:axis], case.x.shape[axis], *case.x.shape[axis + 1 :])
        spread = [np.broadcast_to(values, shape).reshape(wide) for values in (mean, square)]
        name = case.name_axis(axis)
        yield Variant(
            spread[0], square=spread[1], values={"name": name, "parts": parts, "which": "each by itself"}
        )
        for part in range(parts if parts <= 8 else 0):
            of_part = [
                values if values.shape[place] == 1 else values.take([part], place) for values in (mean, square)
            ]
            flat = [values.squeeze(place) for values in of_part]
            if is_near(case.used.divisor, case.root(flat[1])):
                which = f"only those of part {part}"
                yield Variant(
                    flat[0], square=flat[1], values={"name": name, "parts": parts, "which": which}, numbers=1
                )


def _average_parts(case: Case) -> Iterator[Variant]:
    """Average the parts' variances, each about its own mean; or their roots."""
    for axis, parts in _list_divisions(case):
        _, square, place, _ = _share_out(case, axis, parts)
        values = {"name": case.name_axis(axis), "parts": parts}
        if case.centres:
            yield Variant(square=square.mean(place), values=values, numbers=1)
        yield Variant(square=np.sqrt(square).mean(place) ** 2, values=values, numbers=1)


def _take_other_row(case: Case) -> Iterator[Variant]:
    """Take the statistics of a neighbour, or of one index for all."""
    statistics = (case.own_mean if case.centres else case.mean), case.square
    for axis in case.kept:
        length, name = case.x.shape[axis], case.name_axis(axis)
        for shift in list_shifts(length):
            mean, square = (np.roll(values, shift, axis) for values in statistics)
            which = f"index {name} − {shift}" if 2 * shift <= length else f"index {name} + {length - shift}"
            yield from _yield_rows(case, mean, square, which)
        for index in range(min(length, _MOST_PARTS)):
            mean, square = (values.take([index], axis) for values in statistics)
            yield from _yield_rows(case, mean, square, f"{name}={index} in every group")


def _yield_rows(case: Case, mean: Floats, square: Floats, which: str) -> Iterator[Variant]:
    both = is_near(case.used.divisor, case.root(square)), is_near(case.used.mean, mean)
    if both[0]:
        yield Variant(mean, square=square, values={"which": which, "what": "statistics are those"}, numbers=1)
        yield Variant(
            square=square, values={"which": which, "what": f"the {case.square_name} is that"}, numbers=1
        )
    if both[1] and case.centres:
        yield Variant(mean, case.divisor, values={"which": which, "what": "the mean is that"}, numbers=1)


def _take_other_axes(case: Case) -> Iterator[Variant]:
    """Mean and variance, or one of them, over other axes of the view."""
    wide = [axis for axis, n in enumerate(case.x.shape) if n > 1]
    for count in range(1, len(wide) + 1):
        for axes in itertools.combinations(wide, count):
            if set(axes) == {axis for axis in case.axes if case.x.shape[axis] > 1}:
                continue
            mean = case.x.mean(axes, keepdims=True) if case.centres else np.zeros([1] * case.x.ndim)
            square = ((case.x - mean) ** 2).mean(axes, keepdims=True)
            over = "×".join(case.name_axis(axis) for axis in axes)
            yield Variant(mean, square=square, values={"what": "statistics are", "over": over})
            if case.centres:
                yield Variant(mean, case.divisor, values={"what": "the mean is", "over": over})
                yield Variant(square=square, values={"what": "the variance is", "over": over})


def _skip_tail(case: Case) -> Iterator[Variant]:
    return _skip_part(case, keeps_count=True)


def _take_part(case: Case) -> Iterator[Variant]:
    return _skip_part(case, keeps_count=False)


COUNTING: Sequence[Row] = (
    Row(Fault("stats-padded-variance", "the variance counts {count} zeros of padding",
              "mask the padded lanes before squaring", "np.where(lane < n, x, 0) - mean",
              ("N",)), _pad_variance),
    Row(Fault("stats-padded-mean", "the mean counts {count} zeros of padding",
              "divide the sum by the values without padding", "np.pad(x, pad).mean(-1)", ("N",)), _pad_mean),
    Row(Fault("stats-padded", "mean and variance count {count} zeros of padding",
              "leave the padded lanes out of both", "np.pad(x, pad).var(-1)", ("N",)), _pad_both),
    Row(Fault("stats-count", "the sum of {what} is divided by {count}, not {n}",
              "divide by the number of values", "((x - m) ** 2).sum(-1) / (n + 1)",
              ("the values", "N", "M")), _miscount),
    Row(Fault("stats-partial", "statistics are of the first {part} of {length} along {name}",
              "sum over all values of a group", "x[..., :k].var(-1)", ("K", "N", "AXIS")), _take_part),
    Row(Fault("stats-tail-skipped", "sums leave out the last {skipped} of {length} along {name}",
              "add the block behind the last whole one", "x[..., : n // b * b].sum(-1) / n",
              ("K", "N", "AXIS")), _skip_tail),
    Row(Fault("stats-shard", "statistics are of {parts} parts along {name}, {which}", "reduce over all parts",
              "np.concatenate([norm(part) for part in np.split(x, 2)])",
              ("N", "AXIS", "each by itself")), _shard),
    Row(Fault("stats-averaged", "the variance is averaged over {parts} parts of {name}",
              "add the variance of the parts' means", "np.mean([part.var() for part in np.split(x, 2)])",
              ("N", "AXIS")),
              _average_parts),
    Row(Fault("stats-other-row", "{what} of {which}", "index the statistics of the same row",
              "(x - np.roll(x.mean(-1), 1)) / d",
              ("statistics are those", "another group")), _take_other_row),
    Row(Fault("stats-other-axes", "{what} over {over}", "reduce the axes of the norm", "x.mean(0)",
              ("statistics are", "AXES")),
              _take_other_axes),
)  # fmt: skip
"""The likelier ones first, of those that explain as much."""
