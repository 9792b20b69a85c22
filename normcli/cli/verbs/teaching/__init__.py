"""Verbs that answer a student's questions.

* `compare`: norms side by side on one tensor
* `explain`: the arithmetic of a value or a group, step by step
* `restore`: whether gamma and beta can undo a norm
"""
