"""Maps without statistics, y = a · x + b, and what they may be.

* `line_fit`: a and b fitted and judged
* `plain_map`: the map of fewest numbers, also where some values are wrong
* `known_maps`: maps that people use: bytes to 1, ImageNet, stored statistics
"""
