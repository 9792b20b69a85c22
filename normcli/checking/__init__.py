"""How far somebody's result is off the exact one, and how a gradient is wrong.

`ulp` measures distances in units of the last place, `tally` counts them, `check` holds a tensor or statistics
against the exact ones, `gate` is what multiplies those, `half_precision` in which dtype a tensor is judged.
`fault` is what is known of one way to be wrong; `gradients` holds gradients against the exact ones, and tries
the rows of `gradient_faults`: expressions of `gradient_terms`, or several each, in `gradient_forms`.
"""
