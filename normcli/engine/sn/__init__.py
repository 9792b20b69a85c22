"""Spectral normalization, the one norm whose groups are matrices.

`singular_values` gives σ and the solution of groups, from `spectrum` or, where σ is estimated,
`power_iterations`, both made of `exact_products`; `passes` normalize a tensor, differentiate it by `gradients`,
and give u and v.
"""
