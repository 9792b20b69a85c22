"""Spectral normalization, the one norm whose groups are matrices.

* `exact_products`: products of matrices without rounding
* `gradients`: the derivative of a matrix that is divided by σ
* `largest_eigenvalue`: the largest eigenvalue of WᵀW, enclosed as closely as is asked for
* `leading_vectors`: the singular vectors of the largest singular value, known to any number of bits
* `passes`: the passes over a tensor, forward and back
* `power_iterations`: the estimate of σ that frameworks divide by
* `sigma_of_groups`: σ of each group, and the divisors that follow
"""
