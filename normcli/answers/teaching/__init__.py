"""Answers to a student's questions.

* `explanation`: `normcli explain NORM`: the steps of the arithmetic
* `norm_comparison`: `normcli compare`: norms side by side
* `residual_placement`: `normcli compare NORM --residual`: a norm after the addition or before the sublayer
* `restoration`: `normcli restore`: whether gamma and beta undo a norm
"""
