"""The statistics of groups: what is measured of them, and the mean and the divisor that follow.

`measuring` says how leaves are measured and folded. `moments`, `lengths` (with `decimal_lengths`), and
`order_statistics` (with `ranks`) are measured; each solves itself for a plan by `solution`, with eps and the
rules for 0 of `divisor`. `constant_groups` and `omitted_steps` change a solution for a few requests.
"""
