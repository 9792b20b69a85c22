"""Norms side by side on one tensor, and which of them are equal.

* `side_by_side`: `compare`: what each norm shares, needs and gives
* `compared_norm`: a norm under its name, and whether two are the same for every tensor
* `equalities`: which norms are equal, on every tensor or on this one
* `sameness_reasons`: why two norms are equal, and what still differs, in words
* `relatives`: other norms that give the same x̂
"""
