"""Maps without statistics, y = a · x + b, and what they may be.

`lines` fits and judges them, `within` inside bounds, `plain` finds the one of fewest numbers, `trimmed_map`
one with wrong values; `known_maps` are those that people use, `evaluation` the stored statistics that one
would be.
"""
