"""What may have divided a group, and how surely its values show it.

* `standards`: groups centred and divided in one way each
* `error_bounds`: how far rounding may take values
* `evidence`: which eps, ddof or p fits the divisors of all groups
* `weight`: how many bits of evidence a fit is
* `window_model`: windows of neighbouring channels
* `matrix_model`: singular values of matrices
"""
