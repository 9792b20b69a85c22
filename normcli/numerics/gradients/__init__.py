"""The gradients of norms of groups: each is the exact one, rounded once.

`sums` adds up exactly what they are made of; from these, `coefficients` are solved for each group, and `values`
differentiates with them in pairs. What pairs do not decide, `in_fractions` does.
"""
