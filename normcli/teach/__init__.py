"""Answers for students: the arithmetic of one value, comparisons of norms, undoing a norm by gamma and beta.

* `explain`: the arithmetic of one value, forward and backward, step by step
* `compare`: norms side by side, and which of them are equal
* `formulas`: the formulas of a norm as expression trees, and their derivatives
* `restore`: gamma and beta that undo a norm
* `value_index`: where a value lies: read from `--at`, and printed
"""
