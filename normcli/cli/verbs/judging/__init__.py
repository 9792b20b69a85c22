"""Verbs that judge somebody else's numbers.

* `audit`: every norm of a recorded model run
* `check`: somebody's tensor, compared with the exact one
* `check_kinds`: the kinds of checks: tensors, gradients, running statistics, codes, grouped rows, blocks
* `doctor`: whether low precision is safe, and by which algorithm
* `golden`: exact results for another project's tests
* `identify`: the norm and the convention that reproduce a tensor
"""
