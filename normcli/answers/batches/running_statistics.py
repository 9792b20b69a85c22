"""The answer of a training run: the running statistics before and after each batch."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from normcli.documents.document import Line, Table, TableRow, describe_value
from normcli.documents.excerpt import build_excerpt
from normcli.documents.number_format import format_shape, format_statistic
from normcli.documents.plan_header import build_header, describe_plan
from normcli.printable import format_count, make_printable
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from normcli.documents.document import Facts, Section, View
    from normcli.norms.conventions import RunningRule
    from normcli.norms.plan import Plan
    from normcli.running.average import Update

_COLUMNS = (
    *("batch", "source", "channel", "batch_mean", "batch_var"),
    *("old_mean", "new_mean", "old_var", "new_var", "gap"),
)


class TrackedBatch(NamedTuple):
    """A batch and its update of the running statistics.

    Parameters
    ----------
    source : str
        The source of the batch, such as its file.
    plan : Plan
    step : Update
        The running statistics before and after the batch, the batch's statistics, and the two weights with
        which they were averaged.
    gap : float
        The largest difference between the batch normalized with its own and with the new running statistics.
    """

    source: str
    plan: Plan
    step: Update
    gap: float


@dataclass(frozen=True)
class Tracking:
    """The document of `normcli NORM --state`: running statistics before and after each of some batches.

    Parameters
    ----------
    entries : sequence of TrackedBatch
        The batches in order, at least one.
    rule : RunningRule
        Momentum and ddof of the update.
    path : str or None
        The state file; None without one.
    """

    entries: Sequence[TrackedBatch]
    rule: RunningRule
    path: str | None

    def sections(self, view: View) -> Iterator[Section]:
        """Yield a header, a table of the statistics by batch, a table of gaps, and the last batch's arithmetic.

        A gap is the largest difference between a batch normalized with its own and with the running statistics.
        """
        yield self._build_header(view)
        yield self._list_steps(view)
        yield self._list_gaps(view)
        yield Line(tuple(self._format_arithmetic(view)))

    def data(self) -> Mapping[str, Any]:
        """Return the updates as a JSON object: plan, `steps` with an object per batch, and the last statistics.

        The objects in `steps` are those that `records` yields; the last statistics are the member `running`.
        """
        last = self.entries[-1].step.after
        return {
            **describe_plan(self.entries[-1].plan, {"state": self.path, "rule": self.rule._asdict()}),
            "steps": list(self.records()),
            "running": describe_value(last.statistics),
            "batches": last.batches,
        }

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Yield a JSON object per batch: number, source, weights, statistics before, of it, and after."""
        for entry in self.entries:
            step = entry.step
            yield {
                "batch": step.after.batches,
                "source": entry.source,
                **({} if step.after.columns is None else {"columns": list(step.after.columns)}),
                "weights": dict(zip(("old", "new"), step.weights, strict=True)),
                "batch_statistics": describe_value(step.batch),
                "before": describe_value(step.before.statistics),
                "after": describe_value(step.after.statistics),
                "gap": describe_value(entry.gap),
            }

    def rows(self) -> Iterator[Sequence[Any]]:
        """Yield the rows of a CSV table, one per batch and channel; the names of the columns come first."""
        yield _COLUMNS
        for source, _, step, gap in self.entries:
            for channel in range(step.batch.mean.size):
                (old_mean, mean, new_mean), (old_var, var, new_var) = _move(step, channel)
                moved = (mean, var, old_mean, new_mean, old_var, new_var)
                name = channel if step.after.columns is None else step.after.columns[channel]
                yield (step.after.batches, source, name, *moved, gap)

    def _build_header(self, view: View) -> Facts:
        first, last = self.entries[0], self.entries[-1]
        old, new = last.step.weights
        weights = f"{old:g} · running + {new:g} · batch"
        if self.rule.momentum is None:
            weights = "(n − 1)/n · running + 1/n · batch, of the nth batch   (momentum none)"
        else:
            weights += f"   (momentum {self.rule.momentum:g} of the {self.rule.weight_of})"
        source = format_count(len(self.entries), "batch", "batches"), format_shape(first.plan.grid.shape)
        more = [
            ("running", (weights, f"variance of the batch with ddof {self.rule.ddof}")),
            ("batches", (f"{first.step.before.batches} → {last.step.after.batches}",)),
        ]
        if self.path is not None:
            more.append(("state", (make_printable(self.path), f"eps {last.step.after.eps:g}")))
        title = f"{last.plan.norm.name} · running statistics"
        return build_header(title, last.plan, source, view, more=more)

    def _list_steps(self, view: View) -> Table:
        lines = [(entry, channel) for entry in self.entries for channel in range(entry.step.batch.mean.size)]

        def make_row(number: int) -> TableRow:
            (_, plan, step, _), channel = lines[number]
            moves = [[format_statistic(value, view.digits) for value in move] for move in _move(step, channel)]
            batch, moved = [move[1] for move in moves], [f"{old} → {new}" for old, _, new in moves]
            name = plan.grid.running.group_name(channel)
            return TableRow((str(step.after.batches), name, *batch, *moved), channel)

        columns = ("batch", "channel", "batch mean", "batch var", "running mean", "running var")
        table = Table(None, columns, (True, False, *(True,) * 4))
        return build_excerpt(table, make_row, len(lines), "line", view)

    def _list_gaps(self, view: View) -> Table:
        def make_row(number: int) -> TableRow:
            entry = self.entries[number]
            gap = format_statistic(entry.gap, view.digits)
            return TableRow((str(entry.step.after.batches), make_printable(entry.source), gap))

        title = "gap: the furthest that training output and evaluation, with the new statistics, are apart"
        table = Table(title, ("batch", "input", "gap"), (True, False, True))
        return build_excerpt(table, make_row, len(self.entries), "line", view)

    def _format_arithmetic(self, view: View) -> Iterator[str]:
        """Yield the last update of the first channel's mean, and of its variance, as a formula with numbers.

        Nothing is yielded without channels.
        """
        step, plan = self.entries[-1].step, self.entries[-1].plan
        if not step.batch.mean.size:
            return
        old, new = (format_statistic(weight, view.digits) for weight in step.weights)
        for name, move in zip(step.batch._fields, _move(step, 0), strict=True):
            before, batch, after = (format_statistic(value, view.digits) for value in move)
            found = Fraction(old) * Fraction(before) + Fraction(new) * Fraction(batch)
            sign = "=" if found == Fraction(after) else "≈"
            first = plan.grid.running.group_name(0)
            yield f"running {name} of {first}: {old} · {before} + {new} · {batch} {sign} {after}"


def _move(step: Update, channel: int) -> Iterator[tuple[float, ...]]:
    """Yield (old running, batch, new running) of a channel's mean, and then of its variance."""
    for kept in zip(step.before.statistics, step.batch, step.after.statistics, strict=True):
        yield tuple(float(values.flat[channel]) for values in kept)
