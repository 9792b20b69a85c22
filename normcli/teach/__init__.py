"""Answers for students: the arithmetic of one value, comparisons of norms, undoing a norm by gamma and beta.

* `explain`: the arithmetic of one value, forward and backward, step by step
* `formulas`: the formulas of a norm as expression trees, and their derivatives
* `side_by_side`: `compare`: the groups, parameters and results of each norm
* `compared_norm`: a norm under its name; whether two norms are equal for every tensor, and others that are
* `equalities`: which norms are equal, on every tensor or on this one, and why
* `restore`: gamma and beta that undo a norm
* `value_index`: the index of a value, read from `--at` and printed
"""
