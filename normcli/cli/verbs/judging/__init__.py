"""Verbs that judge somebody else's numbers.

* `audit`: `audit`: every norm of a recorded model run
* `check`: `check`: its options, the choice of the kind of check, folders of golden files
* `check_kinds`: the kinds of checks: tensors, gradients, running statistics, codes, grouped rows, blocks
* `doctor`: `doctor`: whether low precision is safe, and by which algorithm
* `golden`: `golden`: golden files written for the tests of another project
* `identify`: `identify`: the norm and the convention that reproduce a tensor
"""
