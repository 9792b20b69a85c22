"""Answers to a student's questions.

* `explanation`: `normcli explain NORM`: the steps of the arithmetic
* `norm_comparison`: `normcli compare`: norms side by side, and which are equal
* `residual_placement`: `normcli compare NORM --residual`: post-norm and pre-norm, after or before the addition
* `restoration`: `normcli restore`: whether gamma and beta undo a norm
"""
