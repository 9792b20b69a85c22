"""Verbs that judge somebody else's numbers.

* `audit`: every norm of a recorded model run
* `check`: somebody's tensor, compared with the exact one
* `check_backward`: `check --backward`: somebody's gradients
* `check_running`: `check --actual-running-mean`: somebody's running statistics
* `doctor`: whether low precision is safe, and by which algorithm
* `golden`: exact results for another project's tests
* `identify`: the norm and the convention that reproduce a tensor
"""
