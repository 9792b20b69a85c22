"""The destinations of one tensor's results: the normalized tensor, its statistics, the answer."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from normcli.cli.files.choose_destination import choose_document_file, choose_tensor_file, choose_values_file
from normcli.cli.files.conflicting_files import require_distinct
from normcli.cli.files.destination import STATISTICS_SUFFIXES, Destination, WholeFiles, describe_written
from normcli.documents.number_format import format_shape
from normcli.errors import UsageError
from normcli.printable import format_bytes, format_count
from normcli.tensors.tensor import STANDARD_STREAM
from normcli.tuples import NamedTuple
from normcli.writers import PAGE, PAINTED, PICTURES, SUFFIXES, WRITERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from normcli.cli.parameters.settings import RunOptions, Settings
    from normcli.results.arguments import Problem
    from normcli.results.result import Result


_LEAST_MEASURED = 1_000_000
"""The size in bytes up to which no rate is reported: it would measure the start of the program."""

_SHOWN = (PAGE, *PICTURES)
"""The formats that show a result in place of its tensor: the page and the pictures."""

_SHOWN_SUFFIXES = tuple(suffix for suffix, name in SUFFIXES.items() if name in _SHOWN)


class Outputs(NamedTuple):
    """The destinations of the results of one tensor.

    Parameters
    ----------
    tensor, statistics : Destination or None
        Where the normalized tensor, and its statistics, are saved; None if they are not.
    document : Destination or None
        Where the answer is written; None if only the tensor is.
    """

    tensor: Destination | None
    statistics: Destination | None
    document: Destination | None

    @property
    def is_stream(self) -> bool:
        """Whether the tensor goes to standard output."""
        return self.tensor is not None and self.tensor.path == STANDARD_STREAM

    def start(self, files: WholeFiles, problem: Problem) -> NDArray[Any] | None:
        """Create the tensor's file, and return its memory-mapped array for a calculation to fill, or None.

        None if no tensor is saved, or its file cannot be filled in place; in that case `save` writes the
        tensor. `files` are the files of the caller's `with` block.
        """
        dtype = problem.plan.choose_output_dtype(problem.tensor.values.dtype)
        return None if self.tensor is None else self.tensor.start_tensor(files, problem.tensor, dtype)

    def save(
        self,
        files: WholeFiles,
        problem: Problem,
        result: Result,
        out: NDArray[Any] | None,
        updated: Mapping[str, NDArray[Any]] = MappingProxyType({}),
    ) -> None:
        """Write the statistics, and the tensor unless it was calculated into its file.

        Parameters
        ----------
        files : WholeFiles
            The files of the caller's `with` block; they replace what is at their paths when it ends without an
            error.
        problem : Problem
        result : Result
        out : ndarray or None
            The array that `start` returned, or None.
        updated : mapping of str to ndarray
            Running statistics by name, written to the file of the statistics too.
        """
        if self.statistics is not None:
            self.statistics.write_arrays(
                files, {**result.statistics, **updated}, problem.plan.grid.group_columns
            )
        if self.tensor is not None and out is None:
            from normcli.tensors.formats.file_formats import Saved

            self.tensor.write_tensor(files, Saved.like(problem.tensor, result.normalized))

    def warn(self, run: RunOptions, problem: Problem) -> None:
        """Write notes on the tensor's file to standard error, such as columns that it lacks."""
        if self.tensor is not None:
            run.warn(problem.tensor.source, *describe_written(self.tensor, problem.tensor))

    def report(self, run: RunOptions, result: Result, seconds: float) -> None:
        """Write shape, dtype, size, time and rate of the saved tensor to standard error.

        Nothing is written if none is saved, or it went to standard output.
        """
        if self.tensor is None or self.is_stream:
            return
        size = self.tensor.measure()
        rate = f" ({format_bytes(round(size / seconds))}/s)" if size and size > _LEAST_MEASURED else ""
        what = f"{format_shape(result.plan.grid.shape)} {result.dtype}"
        what += "" if size is None else f", {format_bytes(size)}"
        more = f"--show stats,check prints {format_count(result.group_count, 'group')}"
        run.warn(str(self.tensor.path), f"{what} in {seconds:.2g} s{rate}; {more}")


def choose_outputs(settings: Settings) -> Outputs:
    """Return the destinations of the normalized tensor, the statistics and the answer.

    Raises
    ------
    UsageError
        If options contradict each other, or a file cannot be written.
    """
    answer, output, format_name = settings.answer, settings.answer.output, settings.answer.format_name
    is_page = format_name == PAGE or (output is not None and output.lower().endswith(_SHOWN_SUFFIXES))
    if answer.fields and (is_page or format_name):
        raise UsageError("--print prints bare numbers; it has no --format, no page and no picture")
    if output == STANDARD_STREAM and is_page:
        raise UsageError("-o - puts the tensor on standard output; --format html alone puts a page there")
    if output == STANDARD_STREAM and answer.fields:
        raise UsageError("-o - puts the tensor on standard output, where --print would go too")
    if output != STANDARD_STREAM and format_name not in (None, *WRITERS):
        raise UsageError(f"--format {format_name} is of tensors: -o - writes one to standard output")
    tensor = None if is_page else choose_tensor_file(answer, _SHOWN_SUFFIXES)
    statistics = choose_values_file(answer.stats_output, "--stats-output", STATISTICS_SUFFIXES)
    require_distinct({"--output": answer.output, "--stats-output": answer.stats_output})
    if is_page:
        document = choose_document_file(settings, _SHOWN)
        if document.format_name == PAINTED:
            from normcli.pictures.svg import require_painter

            require_painter()
        return Outputs(None, statistics, document)
    is_asked = output is None or (output != STANDARD_STREAM and bool(answer.show or format_name))
    return Outputs(tensor, statistics, Destination(None, format_name or "table") if is_asked else None)
