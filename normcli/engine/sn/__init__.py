"""Spectral normalization, the one norm whose groups are matrices.

`singular_values` gives σ and the solution of groups, from `spectrum` (of `symmetric_operators`) or, where σ is
estimated, `power_iterations`, both made of `exact_products`; `passes` normalize a tensor. `gradients`
differentiates, and `backward_passes` for a tensor; `singular_vectors` gives u and v.
"""
