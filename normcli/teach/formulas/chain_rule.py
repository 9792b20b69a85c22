"""The chain rule over a norm's definitions: derivatives of a loss with respect to every name, from y back to x.

The derivatives of every norm follow from its formulas in `normcli.teach.formulas.definitions`.
"""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import TYPE_CHECKING

from normcli.teach.formulas.definitions import Definition, define_group, define_value
from normcli.teach.formulas.derivative import add, differentiate, make_product, sum_up
from normcli.teach.formulas.expression import Constant, Fold, Product, Quotient, Sign, Sum, Symbol, rebuild
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from normcli.norms.plan import Plan
    from normcli.teach.formulas.expression import Expression

    Names = Mapping[str, Constant | Symbol]
    MakeSum = Callable[[Expression], Expression]


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
    """The formulas of a norm, and the derivatives of a loss with respect to each name in them.

    Parameters
    ----------
    plan : Plan
    parameters : sequence of str
        The names of the given parameters: some of `gamma` and `beta`.
    given : bool
        Whether mean and variance are given (running statistics), so that they count as constants.
    fixed : bool
        Whether the divisor is the constant 1, which the norm puts in place of a divisor of 0.
    gate : {"before", "behind"} or None
        `before` if a gate multiplies x and the norm takes the product, `behind` if a gate multiplies the norm's
        result; None without a gate.
    """

    def __init__(
        self,
        plan: Plan,
        parameters: Sequence[str],
        *,
        given: bool,
        fixed: bool = False,
        gate: str | None = None,
    ) -> None:
        self.plan, self.is_window = plan, plan.groups_overlap
        defined = define_group(plan, given=given, beyond=False)
        self.shared = [each for each in defined if each.name is not None and each.when is None]
        self.own = [each for each in define_value(plan, parameters, "float64", gate) if each.name is not None]
        self.fixed = fixed
        if self.is_window:  # whose formulas go by the sum of squares: the mean square is shown beside it
            squares = self.shared[0].formula
            assert isinstance(squares, Quotient)
            self.shared[0] = Definition("Σx²", squares.left)

    def unfold(self, expression: Expression) -> Expression:
        """Return an expression with the derivatives with respect to names of `between` replaced by formulas."""
        return replace(expression, self._gradients) if self._gradients else expression

    @functools.cached_property
    def between(self) -> dict[str, Expression]:
        """Name → formula of a value's names between x and y: x̂, and the result that a gate multiplies."""
        return {each.name: each.formula for each in self.own[1:-1] if each.name and each.formula}

    @functools.cached_property
    def _gradients(self) -> Mapping[Expression, Expression]:
        found: dict[Expression, Expression] = {}
        for name in reversed(self.between):
            formula = self.link(name, [], lambda _: Fraction(0)).formula
            assert formula is not None
            found[Symbol(name_slope(name))] = replace(formula, found)
        return found

    @functools.cached_property
    def aliases(self) -> Mapping[str, str]:
        """Name of a definition → the statistic that is its value: `√var` → `std`."""
        return {
            each.name: each.value.text
            for each in self.shared
            if each.name is not None and isinstance(each.value, Symbol)
        }

    def link_shared(self, weigh: Callable[[Expression], Fraction]) -> list[Link]:
        """Return the derivatives with respect to the names that all values of a group share, such as `mean`.

        They are in order from the divisor back to the mean.

        Names that are given or constant have none.

        Parameters
        ----------
        weigh : callable
            Returns the number of an expression, on which some derivatives depend: which of two numbers is
            larger, and whether a root is 0.
        """
        links: list[Link] = []
        for place in reversed(range(len(self.shared))):
            name = self.shared[place].name or ""
            if self.shared[place].formula is None and self.shared[place].slope is None:
                continue  # what is given is a constant, and so is a number of values
            link = self.link(name, links, weigh, of_one=False)
            if not (self.fixed and name == "divisor"):
                links.append(link)
        return links

    def link(
        self, name: str, links: Sequence[Link], weigh: Callable[[Expression], Fraction], *, of_one: bool = True
    ) -> Link:
        """Return the derivative of the loss with respect to a name, such as `var`, by the chain rule.

        It is a sum over the later names, whose formulas contain this name.

        Parameters
        ----------
        name : str
        links : sequence of Link
            The derivatives with respect to the later names that a group's values share, the last name first;
            empty if none of their formulas contains this name.
        weigh : callable
            Returns the number of an expression, on which some derivatives depend.
        of_one : bool
            Whether the name is of a single value, such as x; otherwise its group shares it, as the mean.
        """
        by = {name} if of_one else {name, self.aliases.get(name, name)}
        terms: list[Expression | None] = []
        through: list[str] = []

        def go_through(later: str, slope: Expression | None, *, is_summed: bool) -> None:
            term = make_product(Symbol(name_slope(later)), slope)
            if term is not None:
                terms.append(sum_up(term) if is_summed else term)
                through.append(later)

        for each in self.own:
            if each.formula is not None:
                slope = differentiate(each.formula, by, weigh, of_one=of_one)
                go_through(each.name or "", slope, is_summed=not of_one and not self.is_window)
        for link in reversed(links):
            if link.formula is None:
                continue
            definition = next(each for each in self.shared if each.name == link.name)
            slope = definition.slope if of_one and "x" in by else None
            if definition.formula is not None:  # its derivative may contain its own name
                slope = differentiate(definition.formula, by, weigh, of_one=of_one)
                slope = slope and replace(slope, {definition.formula: Symbol(link.name)})
            go_through(link.name, slope, is_summed=of_one and self.is_window)
        return Link(name, add(terms), tuple(through))

    def find_needed(self, links: Sequence[Link], weigh: Callable[[Expression], Fraction]) -> set[str]:
        """Return the names, such as `mean`, through which one value of a group changes the loss.

        They are names that all values of the group share. Given statistics are not among them.

        Parameters
        ----------
        links : sequence of Link
            The list that `link_shared` returned.
        weigh : callable
            Returns the number of an expression, on which some derivatives depend.
        """
        through = {link.name: link.through for link in links}
        needed, new = set[str](), {*self.link("x", links, weigh).through}
        while new:
            needed |= new
            new = {name for known in new for name in through.get(known, ())} - needed
        return needed


def replace(expression: Expression, known: Mapping[Expression, Expression]) -> Expression:
    """Return an expression with every part that is a key of `known` replaced by its value."""
    if expression in known:
        return known[expression]
    return rebuild(expression, lambda part: replace(part, known))


def substitute(
    expression: Expression,
    names: Names,
    make_sum: MakeSum,
    settle: Callable[[Expression], Expression] | None = None,
) -> Expression:
    """Return an expression with numbers for its names.

    Parameters
    ----------
    expression : Expression
    names : mapping of str to Constant or Symbol
        The number for each name, or the symbol that it keeps.
    make_sum : callable
        Returns the sum of a term over the group.
    settle : callable or None
        Returns the number of an expression that is shown as one name, such as (x − mean); None to substitute
        in that expression too.

    Raises
    ------
    ArithmeticError
        If a name has no number.
    """

    def go(part: Expression) -> Expression:
        return substitute(part, names, make_sum, settle)

    match expression:
        case Symbol(text, value=value):
            if text in names:
                return names[text]
            if value is None:
                raise ArithmeticError(f"{text} has no number")
            return go(value) if settle is None else settle(value)
        case Fold(terms=(), each=each) if each is not None:
            return make_sum(each)
        case Product(left, right):
            factors = go(left), go(right)
            # Where |x|ᵖ has a corner, at 0, its derivative counts as 0, whatever it is multiplied by.
            return Constant(0) if any(factor == Sign(Constant(0)) for factor in factors) else Product(*factors)
    return rebuild(expression, go)


def rename(expression: Expression, symbols: Mapping[str, Symbol]) -> Expression:
    """Return an expression with names replaced by symbols for a reader; other names by their expressions."""
    return substitute(expression, symbols, lambda each: Sum((), None, rename(each, symbols)))
