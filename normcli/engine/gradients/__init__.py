"""The backward pass of norms of groups.

* `coefficients`: the coefficients of the gradients of groups
* `gate_sums`: the derivative with respect to a gate that is broadcast
* `gradient_tiles`: one tile, in doubles or in pairs
* `passes`: the walks over a tensor and its gradient
* `tiles`: the tuples that the other files hand to each other, and sums for the gradients of gamma and beta
"""
