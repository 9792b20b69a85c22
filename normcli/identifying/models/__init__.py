"""What may have made y: what divided a group, or a map without statistics, and how surely values show it.

* `standards`: groups centred and divided in one way each
* `error_bounds`: how far rounding may take values
* `evidence`: which eps, ddof or p fits the divisors of all groups
* `weight`: how many bits of evidence a fit is
* `window_model`: windows of neighbouring channels
* `matrix_model`: singular values of matrices
* `line_fit`: a and b of y = a · x + b, fitted and judged
* `map_search`: the map of fewest numbers, also where some values are wrong
* `known_maps`: maps that people use: bytes to 1, ImageNet, stored statistics
"""
