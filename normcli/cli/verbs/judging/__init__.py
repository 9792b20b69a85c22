"""Verbs that judge somebody else's numbers.

* `audit`: every norm of a recorded model run
* `check`: a tensor compared with the exact one, or a folder of golden files with its manifest; exit codes
* `check_kinds`: the kinds of checks: tensors, gradients, running statistics, codes, grouped rows, blocks
* `doctor`: whether low precision is safe, and by which algorithm
* `golden`: golden files written for the tests of another project; `check` compares them
* `identify`: the norm and the convention that reproduce a tensor
"""
