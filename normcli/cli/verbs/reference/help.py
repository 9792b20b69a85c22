"""`normcli help`: topics that belong to no single command, and any command's help."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import TYPE_CHECKING

import click

from normcli.cli.commands import VERBS
from normcli.cli.parameters.types import NormName
from normcli.cli.verb_commands import Verb
from normcli.cli.verbs.reference.list_tables import read_symptoms
from normcli.language import translate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from normcli.cli.parameters.settings import Settings

    Topic = tuple[str, Mapping[str, str]]


def _run(settings: Settings, words: tuple[str, ...]) -> None:
    """Explain formats, exit codes, layouts, words, faults, symptoms or dumps; show the help of a command.

    \b
      normcli help formats     what -i and -o take, what -f prints
      normcli help exit-codes  what the shell gets
      normcli help layouts     letters of axes; the channel and the batch axis
      normcli help codes       formats of few bits, and the rules that make scales
      normcli help words       what the words of answers mean
      normcli help faults      what check and identify may find wrong
      normcli help faults eps  the rows of a topic that have a word
      normcli help symptoms    what people report, and the command that names its cause
      normcli help dumps       the file of a model's run, which audit judges
      normcli help bn          the same as normcli bn --help
    """
    ctx = click.get_current_context()
    if 1 <= len(words) <= 2 and words[0] in TOPICS:
        formatter = ctx.make_formatter()
        for list_rows in TOPICS[words[0]]:
            title, rows = list_rows()
            for word in words[1:]:
                rows = _pick_rows(rows, word)
            if not rows:
                continue
            with formatter.section(title):
                _write_rows(formatter, rows)
            _, _, text = inspect.cleandoc(list_rows.__doc__ or "").partition("\n\n")
            if text and len(words) == 1:
                formatter.write_paragraph()
                formatter.write_text(text)
        if not formatter.getvalue():
            raise click.UsageError(f"nothing in help {words[0]} has {words[1]!r}", ctx)
        click.echo(formatter.getvalue().rstrip("\n"))
        return
    root = ctx.find_root()
    _require_command(words, root.command, ctx)
    with root.command.make_context(root.info_name, [*words, "--help"]) as context:
        root.command.invoke(context)


def _pick_rows(rows: Mapping[str, str], word: str) -> Mapping[str, str]:
    """Return the rows whose term or meaning, in English or translated, has a word in upper or lower case."""
    return {
        term: text
        for term, text in rows.items()
        if any(
            word.casefold() in shown.casefold()
            for part in (term, *text.split("\n"))
            for shown in (part, translate(part))
        )
    }


def _write_rows(formatter: click.HelpFormatter, rows: Mapping[str, str]) -> None:
    """Write terms and their meanings in two columns; if a meaning has several lines, below the terms."""
    lines = [
        ("" if number else translate(term), line)
        for term, text in rows.items()
        for number, line in enumerate(text.split("\n"))
    ]
    formatter.write_dl(lines, col_max=30 if len(lines) == len(rows) else _INDENT)


_INDENT = 2
"""The indent of lines below a term."""


def _require_command(words: tuple[str, ...], root: click.Command, ctx: click.Context) -> None:
    """Raise click's `UsageError`, with the first wrong word, unless the words name a norm or a command."""
    command: click.Command | None = None if words and words[0] in TOPICS else root
    for place, word in enumerate(words[command is None :]):
        if not isinstance(command, click.Group):
            raise click.UsageError(f"help {' '.join(words)}: {word!r} is one word too many", ctx)
        command = command.get_command(ctx, word)
        if command is None and place == 0:
            known = ", ".join(TOPICS)
            raise click.UsageError(f"there is no topic, norm or command {word!r}; the topics are {known}", ctx)
        if command is None:
            return  # the group's own error names what is similar


def _list_tensor_files() -> Topic:
    """List the formats of tensors.

    What -o writes, -i reads back as the same tensor, shape and values; where a format cannot hold a tensor, -o
    refuses and names those that can. -o FILE takes the format of the file's name; -o - writes the tensor to
    standard output, in the format of -f (npy by default). Without -o, -f is the format of the answer. -i -
    reads standard input, whose first bytes tell the format. Text keeps the numbers and not the dtype. In JSON,
    NaN and infinities are the strings "nan", "inf" and "-inf". .safetensors and bfloat16 need the extra: pip
    install 'normcli[safetensors]'.

    Zarr stores, store.zarr or store.zarr:group/array, are read and written (the extra zarr); HDF5 files,
    file.h5:array, are read (the extra hdf5). Both are worked on where they lie; their names of axes are the
    layout. A store that is there is replaced with --overwrite alone, and never one that holds other arrays.

    Tables are CSV, TSV, JSON records ([{"x": 1, "y": 2}, …]), JSON Lines of records, and Parquet (the
    extra parquet). Their columns keep their names in every answer, and files that are fitted or applied
    together are matched by them. --columns and --exclude choose the columns to work on; the others pass
    through as they stand. Of Parquet, all columns that are chosen take the dtype that holds all of them,
    what is missing is NaN, and the index of a table of pandas passes through; from text, other columns
    become whole numbers, numbers, booleans or days where every cell is one, and strings otherwise. The
    first row of CSV and TSV is a header if none of its cells is a number and not all are missing values:
    an empty cell, -, NA, N/A, #N/A, <NA>, nan, null and none, in upper or lower case, which are read as
    NaN. A line with nothing in it is no row, but before the last of a table of one column. The delimiter
    is the first of the usual one, comma, semicolon, tab and bar that splits the first 20 lines alike.
    Whole numbers beyond 2^53 are read exactly where all numbers are whole. CSV and TSV of some MiB take a
    fraction of the time with the extra: pip install 'normcli[tables]'.

    A file is written whole or not at all, and input and output may be one path. What comes through a pipe, and
    what does not fit into memory, waits in a temporary file without a name, in the folder of TMPDIR.
    """
    from normcli.printable import format_bytes
    from normcli.tensors.formats.file_formats import FORMATS, FileFormat
    from normcli.tensors.mapped import SMALLEST_MAPPED

    def describe(form: FileFormat) -> str:
        facts = {
            "text": form.is_text,
            "several arrays, FILE:KEY picks one": form.has_keys,
            form.limits: bool(form.limits),
            f"from {format_bytes(SMALLEST_MAPPED)} on worked on where it lies": form.start is not None,
        }
        return "; ".join(fact for fact, holds in facts.items() if holds)

    return "Tensors: -i reads them, -o writes them", {
        suffix: describe(form) for suffix, form in FORMATS.items()
    }


def _list_answer_formats() -> Topic:
    """List the formats of answers.

    Where a verb makes a tensor, -o holds that, or shows it as a page or picture; its table is on standard
    output. JSON is strict and complete, and its numbers read back to the same bits. Norms, explain and
    compare have pages (html); draw and compare have pictures (svg, and png with the extra png). --print FIELD
    prints one number a line and nothing else.
    """
    from normcli.writers import PICTURES, SUFFIXES, WRITERS

    rows = {}
    for name, (module, function) in (WRITERS | PICTURES).items():
        suffixes = " ".join(suffix for suffix, writes in SUFFIXES.items() if writes == name)
        summary = (getattr(import_module(module), function).__doc__ or "").split("\n")[0]
        rows[f"{name}  {suffixes}"] = summary.removeprefix("Write ").rstrip(".")
    return "Answers: -f on standard output, or the suffix of -o", rows


def _list_statistics_files() -> Topic:
    """List the formats of statistics."""
    from normcli.fitting.stats_file import SCHEMA as STATS_SCHEMA
    from normcli.running.state_file import SCHEMA as STATE_SCHEMA

    return "Statistics: .npz archives that numpy.load reads without pickle", {
        STATE_SCHEMA: "--state: norm, mean, var, batches, eps, eps_mode",
        STATS_SCHEMA: "fit, merge: the statistics, what was asked for, and the exact sums that merging needs",
    }


def _list_exit_codes() -> Topic:
    """List the exit codes.

    On an error standard output is empty, and standard error holds one line: what is wrong, and what would be
    right.
    """
    from normcli.errors import ExitCode

    return "Exit codes", {str(int(code)): code.meaning for code in ExitCode}


def _list_layouts() -> Topic:
    """List the layout that tensors of each rank have where --layout is not given.

    --layout takes one letter an axis, in upper or lower case (NCHW, bnd), or words with commas: time,lat,lon.
    With letters, the channel axis is C, else the last; with words, channel, band or feature, if one is there;
    without a layout, axis 1 (a tensor of one axis has no channel), or the last with a --like that has the
    channel last. The batch axis is N or B, in words batch or sample, else axis 0. --axes and --keep take
    letters, words or numbers: under NCHW, --axes CHW, --axes 1,2,3 and --keep N are the same.

    Tensors of ranks that are not listed have no letters: name their axes by number, or give a layout. A tensor
    without axes is a single group.
    """
    from normcli.norms.layout import CHANNEL_LAST_LAYOUTS, DEFAULT_LAYOUTS

    return "Layouts where --layout gives none", {
        f"{rank} axes": f"{letters}; {CHANNEL_LAST_LAYOUTS[rank]} with a --like that has the channel last"
        for rank, letters in DEFAULT_LAYOUTS.items()
    }


def _list_codes() -> Topic:
    """List the formats of few bits that --quantize has.

    A scale is the largest magnitude of the exact result over the largest code, rounded once to the numbers
    that a scale may be; then each value over its scale is rounded once to a code. Files hold codes (int8, or
    the bits of floats as uint8), scales (float32, or their bits as uint8) and, of nvfp4, tensor_scale.

    check NORM --quantize takes codes as bits, as numbers, or two in a byte, and scales of any grouping.
    JSON names the rule that made them: scale-rounding, scale-group, scale-rounded-y, scale-largest,
    scale-reciprocal, scale-inverse, scale-tensor-inverse, scale-power-of-two, scale-eps, scale-least,
    scale-bare, scale-input, scale-ulp, scale-lowered, scale-ratio, scale-rounded, scale-shifted,
    scale-signed, scale-one, scale-tensor-none, scale-transposed, scale-tiled, codes-rounded-y,
    codes-truncated, codes-floored, codes-half-away, codes-divided-short, codes-swapped, codes-format,
    codes-own-scale, codes-ulp or codes-reciprocal, as fault.
    """
    from normcli.quantizing.formats import FORMATS as CODES

    return "Codes of few bits: --quantize", {
        name: f"up to {row.grid.largest:g}, a scale per {row.default_per}: {row.source}"
        for name, row in CODES.items()
    }


def _list_words() -> Topic:
    """List the words of answers."""
    return "Words", {
        "group": "values that share one mean and one variance; 3 groups × 32: three of 32 values each",
        "reduces, keeps": "what differs along reduced axes alone is a group; each place of kept ones has one",
        "nchw → 1c11": "the axes before and after reducing: 1 where one is reduced; a statistic for each c",
        "n=0 c=3 l=7": "a place by the letters of its axes, from 0: in code x[0, 3, 7]",
        "x̂": "the values less their centre, over their divisor: before gamma and beta; field xhat",
        "y": "the output: gamma · x̂ + beta where they are given, else x̂; field y, also called normalized",
        "rstd": "reciprocal standard deviation, 1 / √(var + eps): what layers multiply by and keep",
        "ms, rms": "mean square, and its root: what a norm divides by that subtracts no mean",
        "eps": "keeps the divisor from 0: inside the root it is √(var + eps), outside √var + eps; so "
        "y has a variance below 1: inside, var / (var + eps)",
        "ddof": "the variance is the sum of squares over n − ddof; 0 in layers, 1 in many statistics programs",
        "ulp": "unit in the last place: from a number to the next that its dtype can hold",
        "rounded once": "as if calculated with endless digits, then brought to the dtype in one step",
        "bit for bit": "equal in every bit, not only in the digits that are printed",
        "equal": "of check and identify: the share of values that are the exact ones, rounded",
        "fits": "of identify: between these two numbers every eps gives the values, as far as they show it",
        "evaluation": "normalizing with statistics that were kept in training: y = a · x + b for each channel",
        "numpy-legacy": "the stream of numpy.random.seed and randint, as in notebooks; numpy is default_rng's",
        "like": "a framework's convention: its eps, ddof, axes and the rest; normcli conventions lists them",
    }


def _list_dump_members() -> Topic:
    """List what a dump of a model's run holds.

    A dump is a safetensors file with a tensor for each of these; normcli.record writes it of a PyTorch, Keras
    or Flax model, and any engine may. In its metadata, normcli is a JSON text: {"schema": "normcli-dump/1",
    "layers": [{"name": "layers.0.norm", "norm": "rms", "options": {"eps": 1e-6, "like": "llama"}}, …]}, the
    layers in the order in which they ran. A layer may have "evaluation": true (it normalizes with running
    statistics), "momentum" (of those that it updates: a number, or "none" for plain averages, then "batches"
    too), "kind" (its class), "weights_of" (the layer whose weights are its own too), "gate_act" (the activation
    of its gate, as of check), "gates_input": true (the gate multiplies what is normalized; without it, "like"
    decides) and "note". Its options are those of the norm's command, with _ for -. Without a norm, audit looks
    for it.

    A layer that is called again is NAME#2, NAME#3, …. Without settings every NAME.input is a layer, of the
    norm that --norm says. A folder of NAME.input.npy, … is a dump too, whose settings, if there are any,
    are in dump.json.
    """
    return "Dumps: normcli-dump/1", {
        "NAME.input, NAME.output": "what the norm took and gave",
        "NAME.weight, NAME.bias": "gamma and beta, as the framework has them; or NAME.gamma, NAME.beta",
        "NAME.running_mean, _var": "running statistics before the run",
        "NAME.running_mean_after, …": "and after it, where it updates them",
        "NAME.gate": "what multiplies its result, or its input, behind an activation",
        "NAME.grad_output": "the gradient of a loss by the output (dy)",
        "NAME.grad_input, _weight, _bias, _gate": "dx, dgamma, dbeta and dgate",
    }


JOINTS = {
    "stored": "running statistics, in evaluation",
    "before": "what goes into the norm: a residual, or a gate",
    "stats": "means and divisors of groups",
    "affine": "how gamma and beta are applied",
    "after": "what follows gamma and beta",
    "order": "the order of rows, axes and memory",
    "where": "parts of y that are otherwise than the rest",
    "dx": "the gradient of x, in backward passes",
    "dgamma": "the gradient of gamma",
    "dbeta": "the gradient of beta",
    "dgate": "the gradient of the gate",
}
"""The start of a fault's id, up to its hyphen → the part of a kernel that is wrong."""


def _list_joints() -> Topic:
    """List where a norm may be wrong.

    check and identify name one of these where it gives every value of a tensor, or every one of a part of it.
    JSON has its id as fault; ids stay as they are. Below an id stand the cause, what to fix, and the fault in
    NumPy, where x is the input, y the right result, xhat that before gamma and beta, d the divisor, r a
    residual, z a gate; in backward passes g is dy · gamma, and right the right gradient. What N, K, A or AXIS
    is, the tensor shows.
    """
    return "Ids of faults begin with the part of a norm that is wrong", {
        f"{name}-": text for name, text in JOINTS.items()
    }


def _list_faults(joint: str) -> Callable[[], Topic]:
    """Return the function that lists the faults whose ids begin with `joint`, a key of `JOINTS`."""

    def list_rows() -> Topic:
        from normcli.checking.gradient_faults import list_faults
        from normcli.identifying.faults.claim import FAULTS

        rows = {}
        for fault in (each.generalize() for each in (*(row.fault for row in FAULTS), *list_faults())):
            if fault.id.startswith(f"{joint}-"):
                rows[fault.id] = "\n".join((fault.words, f"fix: {fault.remedy}", fault.example))
        return f"{JOINTS[joint].capitalize()} ({joint}-)", rows

    return list_rows


def _list_symptoms() -> Topic:
    """List what people report of norms, and the command that names the cause.

    Below a symptom stand the command, the line of its answer that says what is wrong, what fixes it, and the
    public thread that reports it. In commands, -i is what the model, port or kernel was given, and --actual is
    what it returned. The tensors of each recipe, and whole answers, are on the site that samples/site builds.
    """
    return "Symptoms, and the command that finds the cause", {
        row.symptom: "\n".join((row.command, row.answer, row.fix, row.thread)) for row in read_symptoms()
    }


TOPICS: Mapping[str, Sequence[Callable[[], Topic]]] = {
    "formats": (_list_tensor_files, _list_answer_formats, _list_statistics_files),
    "exit-codes": (_list_exit_codes,),
    "layouts": (_list_layouts,),
    "codes": (_list_codes,),
    "words": (_list_words,),
    "dumps": (_list_dump_members,),
    "faults": (_list_joints, *map(_list_faults, JOINTS)),
    "symptoms": (_list_symptoms,),
}
"""Topic → the functions that return its tables; a docstring's text behind its first line is printed below."""

_WORDS = dict.fromkeys(TOPICS, "a topic") | dict(VERBS)

HELP = Verb(
    "help",
    _run,
    options=(click.argument("words", nargs=-1, metavar="[TOPIC]", type=NormName(_WORDS)),),
)
