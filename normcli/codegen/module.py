"""A norm as a formatted Python module with one function, `normalize`, which runs as it is."""

from __future__ import annotations

import itertools
import textwrap
from typing import TYPE_CHECKING

from normcli.codegen.arrays import FRAMEWORKS
from normcli.codegen.by_hand import Statement, write_by_hand
from normcli.codegen.own_call import write_own_call
from normcli.codegen.task import IMPORT_ML_DTYPES, write_numbers, write_source
from normcli.dtypes import is_bfloat16, is_half
from normcli.norms.calls import CALLS
from normcli.teach.explain.surrounding_steps import name_factor
from normcli.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

    from normcli.codegen.arrays import Arrays
    from normcli.codegen.task import Task, TensorCode
    from normcli.norms.calls import Call
    from normcli.norms.plan import Plan


def write_module(task: Task, framework: str) -> str:
    """Return the text of a module that normalizes a task's tensor.

    Parameters
    ----------
    task : Task
    framework : str
        A key of `FRAMEWORKS`.

    Raises
    ------
    UsageError
        If not every value counts, the framework lacks an operation, or a long input can be neither loaded nor
        drawn by code.
    """
    task.require_whole()
    fixed = task.plan.fixed_parameters
    task = task._replace(sources=[source for source in task.sources if source.name not in fixed])
    arrays, plan = FRAMEWORKS[framework], task.plan
    call = CALLS.get((framework, plan.norm.name))
    obstacles = task.list_obstacles(call)
    made = {source.name: write_source(source, arrays) for source in task.sources}
    imports = {
        "import numpy as np",
        *arrays.imports,
        *(line for each in made.values() for line in each.imports),
    }
    if is_bfloat16(task.dtype) and arrays.bfloat16:
        imports.add(IMPORT_ML_DTYPES)
    own = None if obstacles else call
    body = list(write_body(task, arrays, own))
    helpers = [text for name, text in arrays.helpers.items() if any(f"{name}(" in line.code for line in body)]
    lines = [
        *_write_docstring(task, arrays, call, obstacles),
        "",
        *sorted(imports, key=lambda line: (line.startswith("from"), line)),
        *_pad(list(arrays.setup.get(task.dtype.name, ()))),
        *_pad(list(_write_constants(task, made))),
        *(line for text in helpers for line in ("", "", text)),
        *("", "", f"def normalize({', '.join(_list_parameters(task))}):"),
        *write_line(f'"""{_describe_function(task)}"""'),
    ]
    for line in body:
        lines += write_line(line.code, line.note, 1 + line.depth)
    lines += [*write_line("return y"), *("", "", 'if __name__ == "__main__":')]
    for code in _write_main(task, arrays, made):
        lines += write_line(code)
    return "\n".join(lines) + "\n"


def write_body(task: Task, arrays: Arrays, call: Call | None) -> Iterator[Statement]:
    """Yield the statements from `x` to `y`, with the framework's own call, or by hand if `call` is None.

    By hand, half precision is calculated in float32. Raises `UsageError` if the framework lacks an operation.
    """
    dtype, evaluation, half = arrays.name_dtype(task.dtype), task.evaluation, is_half(task.dtype)
    single = arrays.write("dtype", dtype="float32")
    wide = {name: Statement(f"{name} = {arrays.write('cast', x=name, dtype=single)}") for name in ("y", "gate")}
    behind, before = (
        [] if gate is None else
        [*([wide["gate"]] if half else []), Statement(f"gate = {arrays.write(gate.activation)}"),
         Statement(f"{name} = {name} * gate")]
        for name, gate in (("y", task.inputs.gate), ("x", task.inputs.gated_input))
    )  # fmt: skip
    narrow = Statement(f"y = {arrays.write('cast', x='y', dtype=dtype)}")
    if call is not None:
        yield from before
        yield from write_own_call(call, task.plan, arrays, dtype, evaluation=evaluation)
        yield from (wide["y"], *behind, narrow) if behind and half else behind
        return
    if not half:
        yield from (*before, *write_by_hand(task.plan, arrays, evaluation=evaluation), *behind)
        return
    yield Statement(
        f"x = {arrays.write('cast', x='x', dtype=single)}", "half precision is calculated in float32"
    )
    yield from before
    for line in write_by_hand(task.plan, arrays, evaluation=evaluation):
        yield line
        name = line.code.removeprefix("if ").removesuffix(" is not None:")
        if name in task.plan.norm.parameter_names:
            yield Statement(f"{name} = {arrays.write('cast', x=name, dtype=single)}", "", line.depth + 1)
    yield from (*behind, narrow)


def _list_parameters(task: Task) -> list[str]:
    """Return the parameters of the emitted function `normalize`, as code."""
    gate = [source.name for source in task.sources if source.name == "gate"]
    return ["x", *gate, *([] if task.plan.fixed_parameters else ["gamma=None", "beta=None"])]


def _write_main(task: Task, arrays: Arrays, made: dict[str, TensorCode]) -> Iterator[str]:
    """Yield the lines of the module's main part, which make the inputs and print the result.

    `made` has the code of each tensor by its name.
    """
    dtype = arrays.name_dtype(task.dtype)
    for source in task.sources:
        name, (code, *_, is_native) = source.name, made[source.name]
        is_made = is_native or arrays.takes_numpy
        if is_made and source.values.dtype != task.dtype:
            code = arrays.write("cast", x=code, dtype=dtype)
        yield f"{name} = {code}"
        shape = task.plan.parameters.shape
        if name in task.plan.norm.parameter_names and source.values.shape != shape:
            yield f"{name} = {arrays.name if is_native else 'np'}.broadcast_to({name}, {shape})"
        if not is_made:
            yield f"{name} = {arrays.write('make', x=name, dtype=dtype)}"
    others = [f"{source.name}={source.name}" for source in task.sources[1:]]
    yield f"print(normalize({', '.join(['x', *others])}))"


def _write_constants(task: Task, made: dict[str, TensorCode]) -> Iterator[str]:
    """Yield the lines that assign constants: running statistics, u and v, and the numbers of inputs."""
    given = task.inputs.given
    if given is not None:
        yield from write_constant("RUNNING_MEAN", write_numbers(given.mean))
        yield from write_constant("RUNNING_VAR", write_numbers(given.var))
    iteration = task.plan.spec.iteration
    for name in () if iteration is None else ("u", "v"):
        if (vector := getattr(iteration, name)) is not None:
            yield from write_constant(name.upper(), repr([*vector]))
    for name, each in made.items():
        if each.numbers is not None:
            yield from write_constant(name.upper(), each.numbers)


def _write_docstring(task: Task, arrays: Arrays, call: Call | None, obstacles: list[str]) -> Iterator[str]:
    plan, norm = task.plan, task.plan.norm
    title = f"{norm.title[0].upper()}{norm.title[1:]} in {arrays.title}: {norm.summary}."
    yield from textwrap.wrap(f'"""{title}', WIDTH)
    yield from ("", f"    x_hat = {plan.formula}", "")
    yield from textwrap.wrap(_describe_request(task), WIDTH)
    yield from textwrap.wrap(describe_call(plan, arrays, call, obstacles), WIDTH)
    yield f'Written by normcli {__version__}.\n"""'


def _describe_request(task: Task) -> str:
    """Return a sentence on the shape, axes and options of the norm."""
    plan, grid, spec = task.plan, task.plan.grid, task.plan.spec
    axes = ", ".join(f"{grid.layout.name(axis)} ({axis})" for axis in grid.axes) or "none"
    layout = "" if grid.layout.text is None else f", layout {grid.layout.text}"
    facts = [f"x has the shape {grid.shape}{layout}", f"axes reduced: {axes}"]
    if grid.groups is not None:
        facts.append(f"{grid.groups} {grid.group_order} groups of channels")
    if spec.eps is not None:
        facts.append(f"eps {spec.eps:g}, {spec.eps_mode}")
    if "var" in plan.norm.statistics:
        facts.append(f"ddof {spec.ddof}")
    if spec.p is not None:
        facts.append(f"p {spec.p:g}")
    if spec.range is not None:
        facts.append("x_hat is brought into the range {:g} to {:g}".format(*spec.range))
    if task.evaluation:
        facts.append("with running statistics")
    for name, gate in (("y", task.inputs.gate), ("x", task.inputs.gated_input)):
        if gate is not None:
            factor = name_factor(gate).replace("z", "gate")
            facts.append(f"{name} is multiplied by {factor}")
    if spec.flat_rule is not None:
        facts.append(f"groups {spec.flat_rule.value} count as constant in normcli, and not here")
    return "; ".join(facts) + "."


def describe_call(plan: Plan, arrays: Arrays, call: Call | None, obstacles: list[str]) -> str:
    """Return a sentence on the framework's call, or on why it is not used; "" for NumPy, which has no calls.

    Parameters
    ----------
    plan : Plan
    arrays : Arrays
    call : Call or None
        The framework's call for the norm; None if it has none.
    obstacles : list of str
        The reasons why the call cannot express the plan; empty if it can.
    """
    if call is None:
        has_calls = any(framework == arrays.name for framework, _ in CALLS)
        return f"By hand: {arrays.title} has no call for {plan.norm.title}." if has_calls else ""
    if obstacles:
        return f"By hand: {call.name} cannot express {'; nor '.join(obstacles)}."
    divides_by_zero = plan.norm.divisor.divides and not plan.spec.eps
    zero = "; where normcli has 0 for 0/0, it may give nan" if divides_by_zero else ""
    return f"Calls {call.name} ({call.source}, {call.convention.version}){zero}."


def _describe_function(task: Task) -> str:
    plan = task.plan
    names = () if plan.fixed_parameters else plan.norm.parameter_names
    parameters = f"; {' and '.join(names)}: {plan.parameters.shape}" if names else ""
    return f"Return x normalized, of the shape {plan.grid.shape}{parameters}."


def _pad(lines: list[str]) -> list[str]:
    """Return lines with a blank line before them; an empty list for no lines."""
    return ["", *lines] if lines else []


WIDTH = 100
"""The greatest length of a line of emitted code."""

_INDENT = "    "


def write_line(code: str, note: str = "", depth: int = 1) -> list[str]:
    """Return the lines of a statement, with a comment after it or, if that is too long, before it.

    Parameters
    ----------
    code : str
        The statement on one line; a call at its end is split if the line is too long.
    note : str
        The comment; "" for none.
    depth : int
        The number of indents.
    """
    indent = _INDENT * depth
    comment = f"  # {note}" if note else ""
    if len(indent + code + comment) <= WIDTH:
        return [f"{indent}{code}{comment}"]
    name, _, value = code.partition(" = ")
    before = [f"{indent}# {name}: {note}" if value else f"{indent}# {note}"] if note else []
    return before + [f"{indent}{line}" for line in _split_call(code, WIDTH - len(indent))]


def write_constant(name: str, text: str) -> list[str]:
    """Return the lines that assign a constant: one, or if that is too long, several with `# fmt: skip`.

    `text` is the code of the value. It is broken at blanks only, so long code needs brackets around it.
    """
    code = f"{name} = {text}"
    if len(code) <= WIDTH:
        return [code]
    skip = "  # fmt: skip"
    lines = textwrap.wrap(code, WIDTH - len(skip), subsequent_indent=_INDENT, break_on_hyphens=False)
    return [*lines[:-1], lines[-1] + skip]


def _split_call(code: str, width: int) -> list[str]:
    """Return a statement as one line, or as several, at most `width` long, with the call at its end split.

    The call's arguments get one line if that fits, else a line each. A statement that does not end in a call is
    not split.
    """
    if len(code) <= width or not code.endswith(")"):
        return [code]
    steps = ((sign in ")]}") - (sign in "([{") for sign in reversed(code))
    depths = [*itertools.accumulate(steps)][::-1]  # how many brackets around a place are closed behind it
    start = max(place for place, depth in enumerate(depths) if not depth) + 1
    if len(_INDENT + code[start:-1]) <= width:
        return [code[:start], _INDENT + code[start:-1], ")"]
    commas = [place for place in range(start, len(code)) if depths[place] == 1 and code.startswith(", ", place)]
    bounds = itertools.pairwise([start - 1, *commas, len(code) - 1])
    return [code[:start], *(f"{_INDENT}{code[left + 1 : right].strip()}," for left, right in bounds), ")"]
