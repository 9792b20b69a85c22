"""Models of y: divisors of groups, maps y = a · x + b without statistics, and their evidence.

* `standards`: groups centred and divided, for each divisor
* `error_bounds`: the largest errors of rounding
* `divisor_fit`: the eps, ddof and p that fit the divisors of all groups
* `weight`: how many bits of evidence a fit is, however its numbers were found
* `window_model`: windows of neighbouring channels
* `matrix_model`: singular values of matrices
* `line_fit`: a and b of y = a · x + b, fitted and tested
* `map_search`: the map with the fewest numbers, also if some values are wrong
* `known_maps`: well-known maps: bytes to 1, ImageNet, min-max and max-abs of all values, running statistics
"""
