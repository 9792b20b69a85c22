"""The backward pass of norms of groups.

* `coefficients`: the coefficients of the gradients of groups
* `gate_sums`: the derivative with respect to a gate that is broadcast
* `parameter_sums`: the gradients of gamma and beta, as sums of many values
* `passes`: the walks over a tensor and its gradient
* `tile_gradients`: the gradients of one tile, in doubles or pairs, by given coefficients or the tile's own
* `tile_records`: records of tiles and bands in the backward pass: x, dy, gamma, shift
"""
