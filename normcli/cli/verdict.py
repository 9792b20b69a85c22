"""How verbs end that judge: warnings on stderr, the document on stdout, an exit code for how it went."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from normcli.errors import DegenerateError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from normcli.documents.document import Document
    from normcli.norms.plan import Plan
    from normcli.tensors.tensor import Tensor
    from normcli.verify.check import Checked


def tell_warnings(
    plan: Plan, tensor: Tensor, checked: Checked, settings: Mapping[str, Any], *, evaluation: bool = False
) -> list[str]:
    """Return what there is to warn of, and say it on stderr unless quiet is asked for.

    Raises
    ------
    DegenerateError
        If there is anything, and `strict` is asked for.
    """
    from normcli.results.degenerate import find_degeneracies, find_degeneracies_of_evaluation

    values, statistics = tensor.values, checked.statistics
    if evaluation:
        found = find_degeneracies_of_evaluation(plan, values, statistics, None, checked.selection)
    else:
        found = find_degeneracies(plan, values, statistics, None, checked.counts, checked.selection)
    warnings = [str(kind) for kind in found]
    if settings["strict"] and warnings:
        raise DegenerateError(f"{plan.norm.name}: {'; '.join(warnings)}")
    if not settings["quiet"]:
        for warning in warnings:
            click.echo(f"normcli: {plan.norm.name}: {warning}", err=True)
    return warnings


def show_verdict(document: Document, settings: Mapping[str, Any], *, ok: bool) -> None:
    """Print a document on stdout; leave with the exit code of a difference unless all is well."""
    from normcli.cli.view import make_view
    from normcli.writers import write

    view = make_view(settings["colour"], settings["digits"], full=settings["full"])
    write(document, settings["format_"] or "table", sys.stdout, view)
    if not ok:
        sys.stdout.flush()
        raise click.exceptions.Exit(ExitCode.DIFFERENT)
