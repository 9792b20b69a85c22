"""The backward pass of norms of groups.

* `coefficients`: what groups are differentiated with
* `gate_sums`: the derivative by a gate that is broadcast
* `gradient_tiles`: one tile, in doubles or in pairs
* `passes`: the walks over a tensor and its gradient
* `tiles`: what these hand to each other, and sums for the gradients of gamma and beta
"""
