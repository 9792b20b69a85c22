"""What may divide a group, and how surely values show it.

`standards` centre and divide groups in one way each, `bounds` and `levels` say how far rounding may take
them, `model` is what divides, found by `evidence` and weighed by `weight`; `lengths` are those of ℓp norms,
`one_pass` variances that cancel, `windows` those of LRN, `matrices` and `iterations` singular values.
"""
