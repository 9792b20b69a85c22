"""What a student asks: how a value comes about, how norms differ, whether gamma and beta undo a norm.

* `explain`: the arithmetic of one value, forward and backward, step by step
* `compare`: norms side by side, and which of them are equal
* `formulas`: the formulas of a norm as expression trees, and their derivatives
* `restore`: gamma and beta that undo a norm
* `value_index`: where a value lies: read from `--at`, and printed
"""
