"""What may divide a group, and how surely values show it.

`standards` centre and divide groups in one way each, `bounds` says how far rounding may take them, `evidence`
finds what divides, which is weighed by `weight`; `one_pass` are variances that cancel, `windows` those of LRN,
`matrices` singular values.
"""
