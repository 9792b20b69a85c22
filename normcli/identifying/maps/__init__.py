"""Maps without statistics, y = a · x + b, and what they may be.

`lines` fits and judges them, `plain` finds the one of fewest numbers, also where values are wrong;
`known_maps` are those that people use, the evaluation of a norm by stored statistics among them.
"""
