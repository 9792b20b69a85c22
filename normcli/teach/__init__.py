"""Answers for students: the arithmetic of one value, comparisons of norms, undoing a norm by gamma and beta.

* `explain`: the arithmetic of one value, forward and backward, step by step
* `formulas`: the formulas of a norm as expression trees, and their derivatives
* `side_by_side`: `compare`: what each norm shares, needs and gives
* `compared_norm`: a norm under its name, whether two are the same for every tensor, and others that are
* `equalities`: which norms are equal, on every tensor or on this one, and why
* `restore`: gamma and beta that undo a norm
* `value_index`: where a value lies: read from `--at`, and printed
"""
