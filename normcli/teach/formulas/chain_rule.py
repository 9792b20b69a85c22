"""The chain rule over a norm's definitions: derivatives of a loss with respect to every name, from y back to x.

The derivatives of every norm follow from its formulas in `normcli.teach.formulas.definitions`.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from normcli.teach.formulas.definitions import Definition, define_group, define_value
from normcli.teach.formulas.derivative import add, differentiate, make_product, sum_up
from normcli.teach.formulas.expression import (
    MOST_TERMS,
    Constant,
    Quotient,
    Sum,
    Symbol,
    evaluate,
    replace,
    substitute,
)
from normcli.teach.formulas.long_sums import add_pairs
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.norms.plan import Plan
    from normcli.teach.formulas.expression import Expression

    Numbers = Mapping[str, Constant]


class Link(NamedTuple):
    """One step of the chain rule: the derivative of the loss with respect to one name in a norm's formulas.

    Parameters
    ----------
    name : str
        The name in a definition, such as `var`, `divisor`, `x`.
    formula : Expression or None
        The derivative, made of names and of the derivatives (`name_slope`) with respect to later names; None if
        it is 0.
    through : tuple of str
        The later names whose definitions contain this name and carry its effect on the loss.
    """

    name: str
    formula: Expression | None
    through: tuple[str, ...]


def name_slope(name: str) -> str:
    """Return the name of the derivative of the loss with respect to a name: `∂var` for `var`, `dy` for `y`."""
    return "dy" if name == "y" else f"∂{name}"


class Chain:
    """A norm's formulas in the numbers of one group or window, and the derivatives by each name in them.

    All numbers are exact, except roots, powers, and sums over more than `MOST_TERMS` values (to some 100 bits).

    Parameters
    ----------
    plan : Plan
    arrays : mapping of str to ndarray
        Vectors over the group's values: `x`, and if given `dy`, `gamma` and `beta`; with a gate z, x before the
        gate, and act(z) and act′(z) as arrays of `Fraction`.
    known : mapping of str to Fraction
        The numbers that have no formula: eps, options, running statistics.
    given : bool
        Whether mean and variance are given (running statistics), so that they count as constants.
    fixed : bool
        Whether the divisor is the constant 1, which the norm puts in place of a divisor of 0.
    gate : {"before", "behind"} or None
        `before` if a gate multiplies x and the norm takes the product, `behind` if a gate multiplies the norm's
        result; None without a gate.

    Attributes
    ----------
    numbers : dict of str to Constant
        The numbers that all values share, such as the mean; derivatives join them when they are known.

    Raises
    ------
    ArithmeticError
        If a number divides by 0, or is beyond what can be calculated.
    """

    def __init__(
        self,
        plan: Plan,
        arrays: Mapping[str, NDArray[Any]],
        known: Mapping[str, Fraction],
        *,
        given: bool = False,
        fixed: bool = False,
        gate: str | None = None,
    ) -> None:
        self.plan, self.arrays, self.fixed, self.count = plan, arrays, fixed, arrays["x"].size
        defined = define_group(plan, given=given, beyond=False)
        self.shared = [each for each in defined if each.name is not None and each.when is None]
        self.own = [each for each in define_value(plan, arrays, "float64", gate) if each.name is not None]
        if plan.groups_overlap:  # whose formulas go by the sum of squares: the mean square is shown beside it
            squares = self.shared[0].formula
            assert isinstance(squares, Quotient)
            self.shared[0] = Definition("Σx²", squares.left)
        self.numbers = {name: Constant(number) for name, number in {**known, "n": Fraction(self.count)}.items()}
        for each in self.shared:
            names = self._list_names(each)
            number = self.numbers.get(names[-1])
            if each.formula is not None:
                number = Constant(self.work_out(each.formula))
            self.numbers |= {} if number is None else dict.fromkeys(names, number)
        if fixed:
            self.numbers["divisor"] = Constant(1)

    @staticmethod
    def _list_names(each: Definition) -> list[str]:
        """Return the name of a definition, and the statistic that is its value, such as `√var` and `std`."""
        return [each.name or "", *([each.value.text] if isinstance(each.value, Symbol) else [])]

    # -- numbers

    def work_out(self, expression: Expression, own: Numbers = MappingProxyType({})) -> Fraction:
        """Return the exact value of an expression of names; `own` has the numbers of one value by name.

        Raises
        ------
        ArithmeticError
            If a name has no number, a divisor is 0, or a term of a long sum is beyond float64.
        """
        return evaluate(substitute(self.unfold(expression), {**self.numbers, **own}, self._sum_up)).number

    def take(self, place: int) -> dict[str, Constant]:
        """Return the numbers of one value of the group by name, such as `x`, `dy` and `gamma`.

        `place` is the value's flat index in the group.
        """
        own = {name: Constant(array.item(place)) for name, array in self.arrays.items()}
        if math.isinf(self.plan.spec.p or 0.0):
            is_peak = abs(Fraction(own["x"].value)) == self.numbers["norm"].value
            own["share"] = Constant(1 / self._ties if is_peak else Fraction(0))
        return own

    def complete(self, own: dict[str, Constant]) -> dict[str, Constant]:
        """Return one value's numbers, with its results between x and y and the derivatives by them."""
        found = dict(own)
        for name in reversed(self.between):
            found[name_slope(name)] = Constant(self.work_out(Symbol(name_slope(name)), own))
        for name, formula in self.between.items():
            found[name] = Constant(self.work_out(formula, found))
        return found

    @functools.cached_property
    def _ties(self) -> Fraction:
        """The number of values whose |x| is the ℓ∞ length."""
        return Fraction(sum(abs(Fraction(x)) == self.numbers["norm"].value for x in self.arrays["x"].tolist()))

    def _sum_up(self, each: Expression) -> Expression:
        """Return the sum of a term over the group's values, as an expression with exact numbers for names.

        Over more than `MOST_TERMS` values, it is one number, rounded to about 100 bits.
        """
        if self.count > MOST_TERMS:
            return Constant(add_pairs(each, self.numbers, self.arrays))
        names = ({**self.numbers, **self.take(place)} for place in range(self.count))
        return Sum(tuple(substitute(each, numbers, self._sum_up) for numbers in names))

    # -- derivatives

    @functools.cached_property
    def between(self) -> dict[str, Expression]:
        """Name → formula of a value's names between x and y: x̂, and the result that a gate multiplies."""
        return {each.name: each.formula for each in self.own[1:-1] if each.name and each.formula}

    def unfold(self, expression: Expression) -> Expression:
        """Return an expression with the derivatives with respect to names of `between` replaced by formulas."""
        return replace(expression, self._gradients) if self._gradients else expression

    @functools.cached_property
    def _gradients(self) -> Mapping[Expression, Expression]:
        found: dict[Expression, Expression] = {}
        for name in reversed(self.between):
            formula = self.link(name).formula
            assert formula is not None
            found[Symbol(name_slope(name))] = replace(formula, found)
        return found

    @functools.cached_property
    def links(self) -> list[Link]:
        """The derivatives with respect to the names that all values share, from the divisor back to the mean.

        What is given is a constant and has none, nor has a number of values.
        """
        links: list[Link] = []
        for each in reversed(self.shared):
            if (each.formula or each.slope) is not None and not (self.fixed and each.name == "divisor"):
                links.append(self._link({*self._list_names(each)}, each.name or "", links, of_one=False))
        return links

    def link(self, name: str) -> Link:
        """Return the derivative of the loss with respect to a name of a single value, such as x."""
        return self._link({name}, name, self.links if name == "x" else [], of_one=True)

    def _link(self, by: set[str], name: str, links: Sequence[Link], *, of_one: bool) -> Link:
        """Return the derivative with respect to a name: a sum over the later names, whose formulas contain it.

        Parameters
        ----------
        by : set of str
            The name and its synonyms.
        name : str
        links : sequence of Link
            The derivatives with respect to the later names that a group's values share, the last name first.
        of_one : bool
            Whether the name is of a single value; otherwise its group shares it, as the mean.
        """
        terms: list[Expression | None] = []
        through: list[str] = []

        def go_through(later: str, slope: Expression | None, *, is_summed: bool) -> None:
            term = make_product(Symbol(name_slope(later)), slope)
            if term is not None:
                terms.append(sum_up(term) if is_summed else term)
                through.append(later)

        overlap = self.plan.groups_overlap
        for each in self.own:
            if each.formula is not None:
                slope = differentiate(each.formula, by, self.work_out, of_one=of_one)
                go_through(each.name or "", slope, is_summed=not of_one and not overlap)
        changing = [link.name for link in links if link.formula is not None]
        for each in self.shared:
            if each.name not in changing:
                continue
            slope = each.slope if of_one else None
            if each.formula is not None:  # its derivative may contain its own name
                slope = differentiate(each.formula, by, self.work_out, of_one=of_one)
                slope = slope and replace(slope, {each.formula: Symbol(each.name)})
            go_through(each.name, slope, is_summed=of_one and overlap)
        return Link(name, add(terms), tuple(through))

    @property
    def needed(self) -> set[str]:
        """The names that all values of the group share, and through which one value changes the loss.

        Given statistics are not among them.
        """
        through = {link.name: link.through for link in self.links}
        needed, new = set[str](), {*self.link("x").through}
        while new:
            needed |= new
            new = {name for known in new for name in through.get(known, ())} - needed
        return needed
