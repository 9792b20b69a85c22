"""Spectral normalization, the one norm whose groups are matrices.

* `exact_products`: products of matrices without rounding
* `gradients`: the derivative of a matrix that is divided by σ
* `passes`: the passes over a tensor, forward and back
* `power_iterations`: the estimate of σ that frameworks divide by
* `singular_values`: σ of each group, and the divisors that follow
* `spectrum`: σ, enclosed as closely as anybody asks
"""
